//! The cells of a Table 1, in words.

use protocol::cohort::Feature;
use protocol::limits::PUBLISHED_PATIENTS;
use protocol::method::card::model::{Entry, Moments};
use protocol::method::card::settings::levels;

/// A line of a feature, in one column.
pub(super) struct Line {
    pub(super) name: String,
    pub(super) cell: String,
    /// Nobody: the line may go.
    pub(super) is_none: bool,
}

/// The lines of a feature in one group: a number's mean or each level, and who has no value.
pub(super) fn lines(feature: &Feature, entry: &Entry, step: u64) -> Vec<Line> {
    let line = |name: &str, cell: String| Line {
        name: name.to_owned(),
        cell,
        is_none: false,
    };
    let name = feature.label_with_unit();
    let mut lines = match levels(&feature.kind) {
        None => vec![line(
            &name,
            entry
                .moments
                .map_or_else(|| "too few values".to_owned(), number),
        )],
        Some(_) if entry.levels.is_empty() => vec![line(&name, "not reported".to_owned())],
        Some(own) => {
            let shares = entry.shares(step);
            let counts = entry.levels.iter().enumerate();
            let cells = counts.map(|(place, count)| {
                let share = shares.as_ref().and_then(|shares| shares.get(place));
                (own[place], counted(*count, share.copied(), step))
            });
            std::iter::once(line(&name, String::new()))
                .chain(cells.map(|(level, cell)| line(feature.level_label(level), cell)))
                .collect()
        }
    };
    lines.push(Line {
        name: "no value".to_owned(),
        cell: match entry.missing {
            0 => "0".to_owned(),
            missing => format!("up to {missing}"),
        },
        is_none: entry.missing == 0,
    });
    lines
}

fn counted(count: Option<u64>, share: Option<f64>, step: u64) -> String {
    let Some(count) = count else {
        return few();
    };
    let about = if step == 1 { "" } else { "about " };
    match share {
        Some(share) if step == 1 => format!("{count} ({:.1}\u{a0}%)", 100.0 * share),
        Some(share) => format!("{about}{count} ({:.0}\u{a0}%)", 100.0 * share),
        None => format!("{about}{count}"),
    }
}

/// A count that is withheld.
pub(super) fn few() -> String {
    format!("fewer than {PUBLISHED_PATIENTS}")
}

/// A mean with its standard deviation, of which three figures are shown.
pub(super) fn number(moments: Moments) -> String {
    let Moments { mean, deviation } = moments;
    let places = places(deviation);
    format!("{mean:.places$} ({deviation:.places$})")
}

#[allow(clippy::cast_possible_truncation)] // an exponent of ten
fn places(deviation: f64) -> usize {
    match deviation > 0.0 {
        true => usize::try_from((2 - deviation.log10().floor() as i32).clamp(0, 6)).unwrap_or(0),
        false => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_figures_of_their_spread() {
        let of = |mean, deviation| number(Moments { mean, deviation });
        assert_eq!(of(246.693, 51.777), "246.7 (51.8)");
        assert_eq!(of(54.4389, 9.038_7), "54.44 (9.04)");
        assert_eq!(of(1_234.5, 518.2), "1234 (518)");
        assert_eq!(of(3.0, 0.0), "3.00 (0.00)");
    }
}
