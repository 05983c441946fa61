#include <fmt/format.h>

#include <memory>
#include <string>

#include "bash_completion.h"
#include "core/error.h"
#include "verbs.h"

namespace longca {

void add_completion(CLI::App& app) {
  CLI::App* verb = app.add_subcommand("completion", "A script that completes commands in a shell");
  auto shell = std::make_shared<std::string>();
  verb->add_option("SHELL", *shell, "bash")->type_name("")->required();
  verb->footer("Example: source <(longca completion bash)");
  verb->callback([shell, &app] {
    if (*shell != "bash")
      throw_input_error("no completion for the shell '{}', only for bash", *shell);
    fmt::print("{}", bash_completion(app));
  });
}

}  // namespace longca
