//! Promise: the page on codes documents every exit code of both programs, and no other.

use coordinator::exit::Exit as Coordinator;
use kindred_tests::workspace::{files, text};
use protocol::failure::{Code, Failure};
use protocol::progress::Ending;
use site_agent::exit::Exit as SiteAgent;
use std::collections::BTreeSet;
use std::path::PathBuf;

const COORDINATOR: [Coordinator; 14] = [
    Coordinator::Done,
    Coordinator::Failed,
    Coordinator::Usage,
    Coordinator::Data,
    Coordinator::Refused,
    Coordinator::Connection,
    Coordinator::Run,
    Coordinator::Books,
    Coordinator::Going,
    Coordinator::Ended,
    Coordinator::Lost,
    Coordinator::Elsewhere,
    Coordinator::Cancelled,
    Coordinator::Unread,
];
const SITE_AGENT: [SiteAgent; 9] = [
    SiteAgent::Done,
    SiteAgent::Failed,
    SiteAgent::Usage,
    SiteAgent::Data,
    SiteAgent::Refused,
    SiteAgent::Connection,
    SiteAgent::Run,
    SiteAgent::Books,
    SiteAgent::Unread,
];

/// Every code, of either program. A new variant does not compile until it is listed above.
fn codes() -> BTreeSet<u8> {
    let coordinator = COORDINATOR.map(|exit| match exit {
        Coordinator::Done
        | Coordinator::Failed
        | Coordinator::Usage
        | Coordinator::Data
        | Coordinator::Refused
        | Coordinator::Connection
        | Coordinator::Run
        | Coordinator::Books
        | Coordinator::Going
        | Coordinator::Ended
        | Coordinator::Lost
        | Coordinator::Elsewhere
        | Coordinator::Cancelled
        | Coordinator::Unread => exit as u8,
    });
    let site_agent = SITE_AGENT.map(|exit| match exit {
        SiteAgent::Done
        | SiteAgent::Failed
        | SiteAgent::Usage
        | SiteAgent::Data
        | SiteAgent::Refused
        | SiteAgent::Connection
        | SiteAgent::Run
        | SiteAgent::Books
        | SiteAgent::Unread => exit as u8,
    });
    coordinator.into_iter().chain(site_agent).collect()
}

/// The codes of the table under a heading that names exit codes; none where there is no such heading.
fn documented(page: &str) -> Option<BTreeSet<u8>> {
    let heading = |line: &&str| line.starts_with('#') && line.to_lowercase().contains("exit code");
    let mut lines = page.lines();
    lines.find(heading)?;
    let section = lines.take_while(|line| !line.starts_with('#'));
    let cells = section.filter_map(|line| line.trim().strip_prefix('|')?.split('|').next());
    Some(
        cells
            .filter_map(|cell| cell.trim().trim_matches('`').parse().ok())
            .collect(),
    )
}

#[test]
fn the_page_on_codes_documents_every_exit_code_and_no_other() {
    let found = documented(&text("deploy/codes.md")).expect("a heading for exit codes");
    assert_eq!(found, codes());
}

#[test]
fn the_page_on_codes_documents_every_code_of_a_failure_and_no_other() {
    let page = text("deploy/codes.md");
    let rows = page.lines().filter(|line| line.starts_with("| `KDR-"));
    let found: Vec<String> = rows.map(str::to_owned).collect();
    let row = |code: &Code| format!("| `{code}` | {} |", code.meaning());
    let wanted: Vec<String> = Code::ALL.iter().map(row).collect();
    assert_eq!(found, wanted);
}

/// The sources spell a code in one place, the table; tests may.
#[test]
fn no_source_spells_a_code() {
    let table = "shared/protocol/src/failure.rs";
    let folders = ["shared", "coordinator", "site-agent"];
    let sources = folders.iter().flat_map(|folder| files(folder, &["rs"]));
    let is_test =
        |path: &PathBuf| path.iter().any(|part| part == "tests") || path.ends_with("tests.rs");
    for path in sources.filter(|path| !path.ends_with(table) && !is_test(path)) {
        let text = text(&path);
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        assert!(!code.contains("\"KDR-"), "{}", path.display());
    }
}

#[test]
fn a_table_of_exit_codes_is_read() {
    let page = "# Kindred\n| 9 | no |\n## Exit codes\n\n| code | meaning |\n| --- | --- |\n\
                | 0 | done |\n| `130` | cancelled |\n\n## More\n| 8 | no |\n";
    assert_eq!(documented(page), Some(BTreeSet::from([0, 130])));
    assert_eq!(documented("# Kindred\n"), None);
}

#[test]
fn one_number_means_one_thing_in_both_programs() {
    for coordinator in COORDINATOR {
        for site_agent in SITE_AGENT {
            let same_number = coordinator as u8 == site_agent as u8;
            let same_name = format!("{coordinator:?}") == format!("{site_agent:?}");
            assert_eq!(same_number, same_name, "{coordinator:?}, {site_agent:?}");
        }
    }
}

#[test]
fn how_a_run_ends_decides_the_code() {
    let failed = |code| Ending::Failed(Failure::new(code, ""));
    for (ending, wanted) in [
        (Ending::Converged, 0),
        (Ending::RoundLimit, 0),
        (Ending::Cancelled, 130),
        (failed(Code::Cohort), 3),
        (failed(Code::Policy), 4),
        (failed(Code::Sites), 6),
    ] {
        assert_eq!(Coordinator::of_ending(&ending) as u8, wanted, "{ending:?}");
    }
}
