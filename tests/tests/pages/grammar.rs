//! Promise: both programs have one grammar. Every command shows an example that it takes, prints JSON with a schema wherever it
//! prints anything, and names what it takes as all others do.

use clap::{Arg, Command, CommandFactory};
use kindred_tests::workspace::{files, text};
use std::collections::BTreeMap;

/// Commands that say all in their log or to a browser, or print a script.
const WITHOUT_JSON: [&str; 6] = [
    "kindred-coordinator serve",
    "kindred-coordinator certificates serve",
    "kindred-coordinator completions",
    "kindred-site-agent serve",
    "kindred-site-agent pages",
    "kindred-site-agent completions",
];
/// What stands in a command's line without a name.
const POSITIONAL: [&str; 8] = [
    "BACKUP",
    "JOB",
    "RUN",
    "STUDY",
    "TOKEN",
    "METHOD",
    "KEY=VALUE",
    "SHELL",
];
/// What an option of a name takes, wherever it is; nothing of a switch.
const OPTIONS: [(&str, &[&str]); 7] = [
    ("out", &["DIR", "FILE"]),
    ("csv", &["FILE"]),
    ("config", &["FILE"]),
    ("json", &[]),
    ("force", &[]),
    ("id", &["COLUMN"]),
    ("data", &["FILE", "DIR"]),
];
/// What is told by its place is no option.
const NO_OPTIONS: [&str; 3] = ["run", "job", "study"];

/// Every command that does something, by its whole name.
fn leaves(command: &Command, above: &str, found: &mut BTreeMap<String, Command>) {
    let name = format!("{above}{}", command.get_name());
    let mut below = command.get_subcommands().peekable();
    if below.peek().is_none() {
        found.insert(name.clone(), command.clone());
    }
    for one in below {
        leaves(one, &format!("{name} "), found);
    }
}

fn programs() -> [Command; 2] {
    [
        coordinator::cli::Cli::command(),
        site_agent::cli::Cli::command(),
    ]
}

fn all() -> BTreeMap<String, Command> {
    let mut found = BTreeMap::new();
    programs()
        .iter()
        .for_each(|program| leaves(program, "", &mut found));
    found
}

/// The commands of each schema.
fn schemas() -> BTreeMap<String, Vec<String>> {
    let mut found = BTreeMap::new();
    for path in files("deploy/python/src/kindred/schema", &["json"]) {
        let schema: serde_json::Value = serde_json::from_str(&text(&path)).unwrap();
        let name = path.file_name().and_then(|name| name.to_str());
        let name = name.and_then(|name| name.strip_suffix(".schema.json"));
        let name = name.unwrap_or_else(|| panic!("{} has another ending", path.display()));
        let id = schema["$id"].as_str().unwrap_or_default();
        let version = id.strip_prefix(&format!("urn:kindred:schema:{name}:"));
        assert!(
            version.is_some_and(|version| version.parse::<u32>().is_ok()),
            "{name}: {id}"
        );
        let commands = schema["commands"].as_array().cloned().unwrap_or_default();
        let commands = commands.iter().filter_map(|one| one.as_str());
        found.insert(name.to_owned(), commands.map(str::to_owned).collect());
    }
    found
}

/// The examples of a command's help.
fn examples(command: &Command) -> Vec<String> {
    let help = command.get_after_help().map(ToString::to_string);
    let help = help.unwrap_or_default();
    let lines = help.lines().skip_while(|line| !line.starts_with("Example"));
    lines.skip(1).map(|line| line.trim().to_owned()).collect()
}

#[test]
fn every_command_shows_an_example_that_it_takes() {
    let mut problems = Vec::new();
    for (name, command) in all() {
        let shown = examples(&command);
        if shown.is_empty() {
            problems.push(format!("{name}: no example"));
        }
        for line in shown {
            let line = line.split(" >").next().unwrap_or_default();
            let words: Vec<&str> = line.split_whitespace().collect();
            let own = programs()
                .into_iter()
                .find(|one| one.get_name() == words[0]);
            match own {
                Some(_) if !line.starts_with(&name) => {
                    problems.push(format!("{name}: {line} is of another"));
                }
                Some(program) => {
                    if let Err(error) = program.try_get_matches_from(words) {
                        problems.push(format!("{name}: {line}: {error}"));
                    }
                }
                None => problems.push(format!("{name}: {line}: found neither program")),
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn every_command_prints_json_with_one_schema_unless_it_prints_nothing() {
    let (commands, schemas) = (all(), schemas());
    let has_json = |command: &Command| command.get_arguments().any(|one| one.get_id() == "json");
    let mut problems = Vec::new();
    for (name, command) in &commands {
        let own = schemas.values().filter(|listed| listed.contains(name));
        match (has_json(command), WITHOUT_JSON.contains(&name.as_str())) {
            (true, false) if own.count() == 0 => problems.push(format!("{name}: no schema")),
            (true, false) | (false, true) => {}
            (true, true) => problems.push(format!("{name}: --json, though it prints nothing")),
            (false, false) => problems.push(format!("{name}: no --json")),
        }
    }
    for (schema, listed) in &schemas {
        let unknown = listed.iter().filter(|name| !commands.contains_key(*name));
        problems.extend(unknown.map(|name| format!("{schema}: no command {name}")));
    }
    let of_files: Vec<&String> = schemas
        .iter()
        .filter(|(_, listed)| listed.is_empty())
        .map(|(name, _)| name)
        .collect();
    assert_eq!(of_files, ["card", "forest", "result"]);
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// The words that an argument takes, as its help names them.
fn values(argument: &Arg) -> Vec<String> {
    let takes = argument.get_action().takes_values();
    let names = argument.get_value_names().unwrap_or_default();
    let names = names.iter().filter(|_| takes).map(ToString::to_string);
    names.collect()
}

#[test]
fn every_command_names_what_it_takes_as_all_others_do() {
    let mut problems = Vec::new();
    let mut table = String::new();
    for (name, command) in all() {
        let places: Vec<String> = command.get_positionals().flat_map(values).collect();
        let has_json = command.get_arguments().any(|one| one.get_id() == "json");
        let json = if has_json { "--json" } else { "-" };
        let examples = examples(&command).len();
        let shown = places.join(" ");
        table.push_str(&format!("{name:<42} {shown:<24} {json:<7} {examples}\n"));
        let others = places
            .iter()
            .filter(|one| !POSITIONAL.contains(&one.as_str()));
        problems.extend(others.map(|one| format!("{name}: {one} stands by its place")));
        for argument in command.get_arguments() {
            let (id, long) = (argument.get_id(), argument.get_long().unwrap_or_default());
            if NO_OPTIONS.contains(&long) {
                problems.push(format!("{name}: --{long} stands in no place"));
            }
            if argument.get_help().is_none() {
                problems.push(format!("{name}: {id} has no help"));
            }
            let known = OPTIONS.iter().find(|(option, _)| *option == long);
            let Some((_, wanted)) = known else { continue };
            let found = values(argument);
            let fits = match wanted.is_empty() {
                true => found.is_empty(),
                false => found.iter().all(|one| wanted.contains(&one.as_str())),
            };
            if !fits {
                problems.push(format!("{name}: --{long} takes {found:?}"));
            }
        }
    }
    println!("{table}");
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn both_programs_make_completions_and_a_man_page_of_every_command() {
    for program in programs() {
        let (home, name) = (tempfile::tempdir().unwrap(), program.get_name().to_owned());
        let out = home.path().join("man1");
        let pages = service::cli::ManPages {
            out: out.clone(),
            json: false,
        };
        let written = pages.write(program.clone()).unwrap();
        let mut on_disk: Vec<_> = std::fs::read_dir(&out).unwrap().collect();
        on_disk.sort_by_key(|entry| entry.as_ref().unwrap().path());
        assert_eq!(on_disk.len(), written.len(), "{written:?}");
        let mut own = BTreeMap::new();
        leaves(&program, "", &mut own);
        for (command, of) in own {
            let page = out.join(format!("{}.1", command.replace(' ', "-")));
            assert!(written.contains(&page), "{command}");
            let text = std::fs::read_to_string(page).unwrap();
            let options = of.get_arguments().filter_map(Arg::get_long);
            for option in options {
                let option = option.replace('-', "\\-");
                assert!(text.contains(&option), "{command}: {option}");
            }
        }
        for shell in ["bash", "zsh", "fish"] {
            let words = [name.as_str(), "completions", shell];
            let matches = program.clone().try_get_matches_from(words).unwrap();
            let (_, matches) = matches.subcommand().unwrap();
            let asked =
                <service::cli::Completions as clap::FromArgMatches>::from_arg_matches(matches);
            let script = asked.unwrap().script(program.clone());
            assert!(
                script.contains("doctor") && script.contains(&name),
                "{shell}"
            );
        }
    }
}
