//! The table of messages, in columns of text.

use super::kinds::MessageKind;

const HEADINGS: [&str; 7] = [
    "message",
    "purpose",
    "shape",
    "bytes",
    "times",
    "rule",
    "withheld?",
];
const WIDTHS: [usize; 7] = [14, 20, 14, 18, 7, 22, 22];

pub(super) fn table(messages: &[MessageKind]) -> String {
    let mut text = row(&HEADINGS.map(str::to_owned));
    text.push_str(&row(&WIDTHS.map(|width| "-".repeat(width))));
    for message in messages {
        let bytes = match message.bytes_formula.contains(' ') {
            true => format!(
                "{} = {}",
                message.bytes_formula,
                report::grouped(message.bytes)
            ),
            false => report::grouped(message.bytes),
        };
        let times = match message.times {
            1 => "once".to_owned(),
            times => format!("up to {}", report::grouped(times)),
        };
        let cells = [
            message.kind.to_owned(),
            message.purpose.to_owned(),
            message.shape.clone(),
            bytes,
            times,
            message.rule.clone(),
            message.withheld.clone(),
        ];
        text.push_str(&row(&cells));
    }
    text
}

/// A heading and its text, in lines of the table's width.
pub(super) fn paragraph(heading: &str, text: &str) -> String {
    const WIDTH: usize = 110;
    const INDENT: usize = 14;
    let mut lines = String::new();
    let mut heading = heading;
    if heading.len() >= INDENT {
        lines.push_str(&format!("{heading}:\n"));
        heading = "";
    }
    for line in wrap(text, WIDTH - INDENT) {
        lines.push_str(&format!("{heading:<INDENT$}{line}\n"));
        heading = "";
    }
    lines
}

/// One row of the table, its cells wrapped to their widths.
fn row(cells: &[String; 7]) -> String {
    let wrapped: Vec<Vec<String>> = cells
        .iter()
        .zip(WIDTHS)
        .map(|(cell, width)| wrap(cell, width))
        .collect();
    let height = wrapped.iter().map(Vec::len).max().unwrap_or(0);
    let mut text = String::new();
    for line in 0..height {
        let parts: Vec<String> = wrapped
            .iter()
            .zip(WIDTHS)
            .map(|(lines, width)| format!("{:<width$}", lines.get(line).map_or("", String::as_str)))
            .collect();
        text.push_str(parts.join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// Lines of at most `width` characters, broken between words; a longer word is broken itself.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let mut characters: Vec<char> = word.chars().collect();
        while !characters.is_empty() {
            let piece: String = characters.drain(..characters.len().min(width)).collect();
            let last = lines.len() - 1;
            let used = lines[last].chars().count();
            if used == 0 {
                lines[last] = piece;
            } else if used + 1 + piece.chars().count() <= width {
                lines[last] = format!("{} {piece}", lines[last]);
            } else {
                lines.push(piece);
            }
        }
    }
    lines
}
