//! Promise: comments, help, errors, logs and reports use the field's words, as the pages do. Names in the code do not count.

use super::style::sources;

/// What neither a comment nor a text of a program says.
const BANNED: [&str; 13] = [
    "hears",
    "is asked of",
    "leaves out",
    "left out",
    "of 100",
    "plain distance",
    "rightly",
    "stands in for",
    "stood in for",
    "told",
    "where absent",
    "whom",
    "wrongly",
];

#[test]
fn comments_and_texts_of_the_programs_use_the_fields_words() {
    let found = sources().into_iter().flat_map(|(name, source)| {
        let words = banned(&source).into_iter();
        words.map(move |(line, word)| format!("{name}:{line}: {word}"))
    });
    let found: Vec<String> = found.collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn a_banned_word_is_found_in_comments_and_texts_and_in_no_name() {
    let source =
        "let told = 'w'; // whom\n/// A `told` name.\nsay(\"left \\\" out\", \"is left\n out\");\n";
    assert_eq!(
        banned(source),
        [(1, "whom"), (3, "left out"), (3, "left out")]
    );
    assert_eq!(
        banned("let quote = '\"'; // told\nlet told = 1;\n"),
        [(1, "told")]
    );
    assert_eq!(banned("r#\"a \"told\" b\"#"), [(1, "told")]);
}

/// The banned words of a source, by line.
fn banned(source: &str) -> Vec<(usize, &'static str)> {
    let mut found = Vec::new();
    for (line, prose) in prose(source) {
        let plain = prose.to_lowercase();
        let plain: String = plain
            .split('`')
            .step_by(2)
            .flat_map(|part| part.chars().chain([' ']))
            .map(|one| {
                if one.is_alphanumeric() || one == '_' {
                    one
                } else {
                    ' '
                }
            })
            .collect();
        let words = plain.split_whitespace().collect::<Vec<_>>().join(" ");
        let words = format!(" {words} ");
        let said = BANNED
            .into_iter()
            .filter(|word| words.contains(&format!(" {word} ")));
        found.extend(said.map(|word| (line, word)));
    }
    found
}

/// The comments, those of several lines as one, and the texts of a source, each with its first line.
fn prose(source: &str) -> Vec<(usize, String)> {
    let mut all: Vec<(usize, String)> = Vec::new();
    let mut rest = source;
    let (mut line, mut last_comment) = (1, 0);
    while let Some(one) = rest.chars().next() {
        let (taken, is_comment, content) = if rest.starts_with("//") {
            let end = rest.find('\n').unwrap_or(rest.len());
            (end, true, rest[..end].trim_start_matches(['/', '!']))
        } else if let Some((taken, content)) = raw(rest).or_else(|| quoted(rest)) {
            (taken, false, content)
        } else {
            let taken = character(rest).unwrap_or(one.len_utf8());
            line += rest[..taken].matches('\n').count();
            rest = &rest[taken..];
            continue;
        };
        match all.last_mut() {
            Some((_, before)) if is_comment && last_comment + 1 == line => {
                before.push(' ');
                before.push_str(content);
            }
            _ => all.push((line, content.to_owned())),
        }
        if is_comment {
            last_comment = line;
        }
        line += rest[..taken].matches('\n').count();
        rest = &rest[taken..];
    }
    all
}

/// A text, and how long it is with its quotes.
fn quoted(rest: &str) -> Option<(usize, &str)> {
    let inner = rest.strip_prefix('"')?;
    let mut is_escaped = false;
    let end = inner.find(|one| {
        let is_end = one == '"' && !is_escaped;
        is_escaped = one == '\\' && !is_escaped;
        is_end
    })?;
    Some((end + 2, &inner[..end]))
}

/// A raw text.
fn raw(rest: &str) -> Option<(usize, &str)> {
    let hashes = rest.strip_prefix('r')?;
    let inner = hashes.trim_start_matches('#');
    let count = hashes.len() - inner.len();
    let inner = inner.strip_prefix('"')?;
    let close = format!("\"{}", "#".repeat(count));
    let end = inner.find(&close)?;
    Some((1 + count + 1 + end + close.len(), &inner[..end]))
}

/// How long a character in quotes is; none of a lifetime.
fn character(rest: &str) -> Option<usize> {
    let inner = rest.strip_prefix('\'')?;
    let mut letters = inner.char_indices();
    let (_, first) = letters.next()?;
    let end = match first {
        '\\' => {
            1 + inner[1..]
                .char_indices()
                .skip(1)
                .find(|(_, one)| *one == '\'')?
                .0
        }
        _ => letters.next().filter(|(_, one)| *one == '\'')?.0,
    };
    Some(end + 2)
}
