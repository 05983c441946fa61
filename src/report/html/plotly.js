// Runs plotly, which is packed into the page (packed_for_html). This stands before all else: the
// browser compiles plotly beside the page's own scripts, as it does with scripts that have an address.
const whenPlotlyRuns = (async () => {
  const letters = atob(document.getElementById("plotly").textContent);
  const bytes = new Uint8Array(letters.length);
  for (let i = 0; i < bytes.length; ++i) bytes[i] = letters.charCodeAt(i);
  const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const text = await new Response(unpacked, { headers: { "Content-Type": "text/javascript" } }).blob();
  const script = Object.assign(document.createElement("script"), { src: URL.createObjectURL(text) });
  await new Promise((resolve, reject) => {
    script.addEventListener("load", resolve);
    script.addEventListener("error", () => reject(new Error("this browser does not run plotly from a blob")));
    document.head.append(script);
  });
  URL.revokeObjectURL(script.src);
  script.remove();
})();
