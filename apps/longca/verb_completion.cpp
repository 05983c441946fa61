#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bench/suite/axes.h"
#include "bench/suite/suite.h"
#include "core/error.h"
#include "verbs.h"

namespace longca {
namespace {

/// The part that is the same whatever verbs there are. Words are cut at blanks only, as the program
/// does, not at COMP_WORDBREAKS; what bash has cut off before the cursor is taken off the replies.
constexpr std::string_view kFunctions = R"bash(
_longca_axis_argument() {  # VERB, AXIS=VALUE,VALUE…
  local axis=${2%%=*} list given='' value
  if [[ $2 != *=* ]]; then
    printf '%s= ' $(_longca_axes "$1")
    return
  fi
  list=${2#*=}
  [[ $list != *,* ]] || given=${list%,*},
  for value in $(_longca_axis_values "$axis"); do printf '%s=%s%s ' "$axis" "$given" "$value"; done
}

_longca() {
  local line=${COMP_LINE:0:COMP_POINT} word previous verb kind candidates='' cut=''
  local -a words
  read -ra words <<<"$line"
  [[ $line != *[[:space:]] ]] || words+=('')
  word=${words[-1]} previous=${words[-2]} verb=${words[1]}
  COMPREPLY=()
  if ((${#words[@]} <= 2)); then
    candidates="$(_longca_verbs) --help --version"
  else
    kind=$(_longca_argument "$verb" "$previous")
    [[ $kind || $word == -* ]] || kind=$(_longca_argument "$verb" '')
    case $kind in
      axis) candidates=$(_longca_axis_argument "$verb" "$word") ;;
      file) COMPREPLY=($(compgen -f -- "$word")); compopt -o filenames 2>/dev/null; return ;;
      any) return ;;
      '') candidates=$(_longca_options "$verb") ;;
      *) candidates=$kind ;;
    esac
  fi
  COMPREPLY=($(compgen -W "$candidates" -- "$word"))
  [[ ${COMPREPLY[0]-} != *= ]] || compopt -o nospace 2>/dev/null
  [[ $word != *=* || $COMP_WORDBREAKS != *=* ]] || cut=${word%"${word##*=}"}
  COMPREPLY=("${COMPREPLY[@]#"$cut"}")
}
complete -F _longca longca ./longca
)bash";

std::string in_words(const std::vector<std::string>& names) {
  return fmt::format("{}", fmt::join(names, " "));
}

std::string axis_names(const Axis& axis) {
  return axis.names == nullptr ? "" : in_words(axis.names());
}

/// Whether the verb's `-a` takes the axis. `report` chooses records by any axis that they have; of
/// the others, only those whose cells may be over ranks take the axes of ranks.
bool takes_axis(const std::string& verb, const Axis& axis) {
  constexpr std::array<std::string_view, 3> kOverRanks = {"cp", "simulate", "advise"};
  if (verb == "report") return true;
  if (axis.set_by_verb) return false;
  return !axis.over_ranks || std::ranges::find(kOverRanks, verb) != kOverRanks.end();
}

/// What may follow as an option's or a positional's value: "axis" for AXIS=VALUES, "file", "any",
/// or names. It is known by the option's type (FILE, DIR, AXIS=VALUES) or by the axis that it is.
std::string argument_kind(const CLI::Option& option) {
  const std::string type = option.get_lnames().empty() ? option.get_name() : option.get_type_name();
  if (type.starts_with("AXIS=")) return "axis";
  std::string axis = option.get_lnames().empty() ? "" : option.get_lnames().front();
  std::replace(axis.begin(), axis.end(), '-', '_');
  if (type == "DIST") axis = "lengths";
  if (type == "MASK") axis = "mask";
  for (const Axis& known : axis_table()) {
    if (known.name != axis || known.names == nullptr) continue;
    const std::string names = axis_names(known);
    return names.empty() ? "any" : names;
  }
  const bool is_record_file = type == "BASE" || type == "NEW";
  if (is_record_file || type.find("FILE") != type.npos || type.find("DIR") != type.npos)
    return "file";
  if (type == "SUITE") {
    std::vector<std::string> names;
    for (const SuiteFile& suite : available_suites()) names.push_back(suite.name);
    return in_words(names);
  }
  if (type == "WHAT" && option.get_lnames().empty()) return in_words(listable());
  if (type == "SHELL") return "bash";
  return "any";
}

/// Shell patterns of one verb: "mask/--lengths) echo …", and "mask/)" for its positional.
std::string argument_cases(const CLI::App& verb) {
  std::string cases;
  for (const CLI::Option* option : verb.get_options()) {
    if (option->get_items_expected_max() == 0) continue;  // a flag
    std::vector<std::string> patterns;
    for (const auto& name : option->get_snames()) patterns.push_back(verb.get_name() + "/-" + name);
    for (const auto& name : option->get_lnames())
      patterns.push_back(verb.get_name() + "/--" + name);
    if (option->get_positional()) patterns.push_back(verb.get_name() + "/");
    cases +=
        fmt::format("    {}) echo '{}' ;;\n", fmt::join(patterns, " | "), argument_kind(*option));
  }
  return cases;
}

/// A shell pattern with the axes of the verb's `-a`; empty for a verb without it.
std::string axes_case(const CLI::App& verb) {
  if (verb.get_option_no_throw("-a") == nullptr) return "";
  std::vector<std::string> names;
  for (const Axis* axis : named_axes()) {
    if (takes_axis(verb.get_name(), *axis)) names.push_back(axis->name);
  }
  return fmt::format("    {}) echo '{}' ;;\n", verb.get_name(), in_words(names));
}

/// Shell patterns of the axes that have names.
std::string axis_value_cases() {
  std::string cases;
  for (const Axis* axis : named_axes()) {
    const std::string names = axis_names(*axis);
    if (!names.empty()) cases += fmt::format("    {}) echo 'all {}' ;;\n", axis->name, names);
  }
  return cases;
}

std::string option_words(const CLI::App& verb) {
  std::vector<std::string> names;
  for (const CLI::Option* option : verb.get_options()) {
    if (option->get_group().empty()) continue;
    for (const auto& name : option->get_lnames()) names.push_back("--" + name);
  }
  return in_words(names);
}

/// A bash script that completes the verbs of `app`, their options, axes and the names of axes that
/// have any. Everything is in the script: completing starts no program.
std::string bash_completion(const CLI::App& app) {
  std::vector<std::string> verbs;
  std::string options;
  std::string arguments;
  std::string axes;
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (verb->get_group().empty()) continue;  // hidden
    verbs.push_back(verb->get_name());
    options += fmt::format("    {}) echo '{}' ;;\n", verb->get_name(), option_words(*verb));
    arguments += argument_cases(*verb);
    axes += axes_case(*verb);
  }
  return fmt::format(
      "# Completion of longca in bash: source <(longca completion bash)\n"
      "_longca_verbs() {{ echo '{}'; }}\n"
      "_longca_axes() {{  # VERB\n  case $1 in\n{}  esac\n}}\n"
      "_longca_axis_values() {{\n  case $1 in\n{}  esac\n}}\n"
      "_longca_options() {{\n  case $1 in\n{}  esac\n}}\n"
      "_longca_argument() {{  # VERB, OPTION or '' for what stands alone\n"
      "  case $1/$2 in\n{}  esac\n}}\n{}",
      in_words(verbs), axes, axis_value_cases(), options, arguments, kFunctions);
}

}  // namespace

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
