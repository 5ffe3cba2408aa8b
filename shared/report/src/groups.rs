//! Figures of groups of patients: how many there are, how near they are to each other, and what marks each. They stay at their site.

use crate::figures::{
    Area, EDGE, Entry, FONT, FigureError, GREY, INK, LINE, Mark, PALETTE, SECOND, WIDTH, drawing,
    extent, fault, write,
};
use plotters::prelude::*;

/// Room for a group's number, in pixels.
const NUMBER: i32 = 24;
/// Width of what has a group's number before it, in pixels.
const WIDE: i32 = WIDTH - NUMBER - EDGE;
/// Narrower cells hold a dot and no number.
const CELL_MIN: i32 = 52;

/// Numbers of groups that an axis names.
const WHOLE_MAX: usize = 8;

/// What one number of groups is worth.
#[derive(Debug, Clone)]
pub struct GroupScore {
    /// Number of groups.
    pub groups: usize,
    /// How much of the outcome they leave open.
    pub bias: f64,
    /// How well each is found again.
    pub stability: Vec<f64>,
    /// How well the worst of as many meaningless groups is.
    pub by_chance: Option<f64>,
}

/// What a feature is like in every group.
#[derive(Debug, Clone)]
pub struct GroupFeature {
    /// Its name.
    pub name: String,
    /// Its values.
    pub values: GroupValues,
}

/// Values by group.
#[derive(Debug, Clone)]
pub enum GroupValues {
    /// Of every group the points below which 5, 25, 50, 75 and 95 % lie.
    Numbers(Vec<[f64; 5]>),
    /// The names of the levels, and of every group the share of each.
    Levels(Vec<String>, Vec<Vec<f64>>),
}

fn block(
    area: &Area<'_>,
    from: (i32, i32),
    to: (i32, i32),
    style: ShapeStyle,
) -> Result<(), FigureError> {
    area.draw(&Rectangle::new([from, to], style)).map_err(fault)
}

fn colour(group: usize) -> RGBColor {
    PALETTE[group % PALETTE.len()]
}

/// Bias above, stability below with the asked `threshold`, by the number of groups; nothing of nothing.
///
/// # Errors
/// [`FigureError`].
pub fn group_scores(scores: &[GroupScore], threshold: f64) -> Result<String, FigureError> {
    let (Some(first), Some(last)) = (scores.first(), scores.last()) else {
        return Ok(String::new());
    };
    let (low, high) = (first.groups as f64 - 0.5, last.groups as f64 + 0.5);
    let most = extent(scores.iter().map(|one| one.bias)).map_or(1.0, |(_, most)| most);
    let bias = scores.iter().map(|one| (one.groups as f64, one.bias));
    let each = scores.iter().flat_map(|one| {
        let groups = one.groups as f64;
        one.stability
            .iter()
            .map(move |stability| (groups, *stability))
    });
    let least = scores.iter().map(|one| {
        let least = one.stability.iter().copied().fold(1.0, f64::min);
        (one.groups as f64, least)
    });
    let chance = scores
        .iter()
        .filter_map(|one| Some((one.groups as f64, one.by_chance?)));
    let asked = vec![(low, threshold), (high, threshold)];
    let stability: [Series<'_>; 4] = [
        ("asked for", GREY, asked, Mark::Line),
        ("each group", INK, each.collect(), Mark::Dot),
        ("the least stable", INK, least.collect(), Mark::Line),
        ("by chance", SECOND, chance.collect(), Mark::Line),
    ];
    let drawn = stability.iter().filter(|one| !one.2.is_empty());
    let entry = |one: &Series<'static>| Entry {
        name: one.0,
        colour: one.1,
        mark: one.3,
    };
    let key: Vec<Entry<'_>> = drawn.map(entry).collect();
    drawing(500, &key, |area| {
        let (above, below) = area.split_vertically(220);
        let panel = Panel {
            x: (low, high),
            most: most.max(f64::MIN_POSITIVE) * 1.08,
            name: "bias",
        };
        panel.draw(&above, &[("bias", INK, bias.collect(), Mark::Line)])?;
        let panel = Panel {
            x: (low, high),
            most: 1.05,
            name: "found again (Jaccard)",
        };
        panel.draw(&below, &stability)
    })
}

struct Panel<'n> {
    x: (f64, f64),
    most: f64,
    name: &'n str,
}

/// A name, a colour, points, and whether a line joins them.
type Series<'n> = (&'n str, RGBColor, Vec<(f64, f64)>, Mark);

impl Panel<'_> {
    fn draw(&self, area: &Area<'_>, series: &[Series<'_>]) -> Result<(), FigureError> {
        let mut chart = ChartBuilder::on(area)
            .margin(EDGE)
            .x_label_area_size(44)
            .y_label_area_size(60)
            .build_cartesian_2d(self.x.0..self.x.1, 0.0..self.most)
            .map_err(fault)?;
        chart
            .configure_mesh()
            .x_desc("groups")
            .y_desc(self.name)
            .x_labels(2 * WHOLE_MAX)
            .x_label_formatter(&|groups| match groups.fract() == 0.0 {
                true => format!("{groups:.0}"),
                false => String::new(),
            })
            .label_style(FONT)
            .light_line_style(TRANSPARENT)
            .bold_line_style(GREY.mix(0.5))
            .draw()
            .map_err(fault)?;
        for (_, colour, points, mark) in series {
            let line = match mark {
                Mark::Line => points.as_slice(),
                Mark::Dot | Mark::Ring | Mark::Shaped(_) | Mark::Target => &[],
            };
            let dots = if *colour == GREY {
                &[]
            } else {
                points.as_slice()
            };
            chart
                .draw_series(LineSeries::new(
                    line.iter().copied(),
                    colour.stroke_width(2),
                ))
                .map_err(fault)?;
            let dots = dots.iter().map(|at| Circle::new(*at, 3, colour.filled()));
            chart.draw_series(dots).map_err(fault)?;
        }
        Ok(())
    }
}

/// How near patients are to each other, in the order of their groups: the stronger the colour, the nearer. `cells` are mean distances, row by row;
/// `counts` says how many rows each group has; `farthest` is white.
///
/// # Errors
/// [`FigureError`].
pub fn heat_map(
    cells: &[Vec<f64>],
    counts: &[usize],
    farthest: f64,
) -> Result<String, FigureError> {
    let rows = i32::try_from(cells.len()).unwrap_or(0);
    if rows == 0 {
        return Ok(String::new());
    }
    let (left, top) = (NUMBER, LINE);
    let place = |row: i32| WIDE * row / rows;
    drawing(top + WIDE + EDGE, &[], |area| {
        for (i, row) in (0..).zip(cells) {
            for (j, apart) in (0..).zip(row) {
                let near = (1.0 - apart / farthest).clamp(0.0, 1.0).sqrt();
                if near > 0.0 {
                    let from = (left + place(j), top + place(i));
                    let to = (left + place(j + 1), top + place(i + 1));
                    block(area, from, to, INK.mix(near).filled())?;
                }
            }
        }
        let mut first = 0;
        for (group, count) in (1..).zip(counts) {
            let group: u32 = group;
            let next = first + i32::try_from(*count).unwrap_or(0);
            let (from, to) = (place(first), place(next));
            let corners = [(left + from, top + from), (left + to, top + to)];
            block(area, corners[0], corners[1], SECOND.stroke_width(1))?;
            let middle = i32::midpoint(from, to);
            write(area, &group.to_string(), (EDGE, top + middle - LINE / 2))?;
            write(area, &group.to_string(), (left + middle - 4, 2))?;
            first = next;
        }
        Ok(())
    })
}

/// How far each group lies from all others by every feature: the darker the farther, a dot where chance does not do it. Nothing of
/// nothing.
///
/// # Errors
/// [`FigureError`].
pub fn group_marks(names: &[String], marks: &[Vec<(f64, bool)>]) -> Result<String, FigureError> {
    if names.is_empty() || marks.is_empty() {
        return Ok(String::new());
    }
    let (lines, groups) = (names.len(), marks.len());
    let all = marks.iter().flatten().map(|mark| mark.0);
    let most = extent(all)
        .map_or(1.0, |(_, most)| most)
        .max(f64::MIN_POSITIVE);
    let wide = (WIDTH - 2 * EDGE) / i32::try_from(groups).unwrap_or(i32::MAX);
    let top = |line: usize| LINE * (1 + 2 * i32::try_from(line).unwrap_or(0));
    let across = |group: usize| EDGE + wide * i32::try_from(group).unwrap_or(0);
    drawing(top(lines) + EDGE, &[], |area| {
        for (group, of_group) in marks.iter().enumerate() {
            let left = across(group);
            write(area, &(group + 1).to_string(), (left + wide / 2 - 4, 2))?;
            for (line, (distance, is_mark)) in of_group.iter().enumerate() {
                let share = (distance / most).clamp(0.0, 1.0);
                let share = if share.is_nan() { 0.0 } else { share };
                let (from, to) = (top(line) + LINE, top(line) + 2 * LINE);
                let ground = INK.mix(0.75 * share).filled();
                block(area, (left, from), (left + wide - 2, to - 2), ground)?;
                let mark = if *is_mark { "\u{25cf}" } else { "" };
                let text = match wide < CELL_MIN {
                    true => mark.to_owned(),
                    false => format!("{distance:.2} {mark}"),
                };
                write(area, text.trim_end(), (left + 2, from + 2))?;
            }
        }
        for (line, name) in names.iter().enumerate() {
            write(area, name, (EDGE, top(line) + 2))?;
        }
        Ok(())
    })
}

/// What every feature is like in each group: boxes from 25 to 75 % with the median, whiskers from 5 to 95 %; of levels their
/// shares, the first one darkest. Nothing of nothing.
///
/// # Errors
/// [`FigureError`].
pub fn group_features(features: &[GroupFeature]) -> Result<String, FigureError> {
    let groups = |feature: &GroupFeature| match &feature.values {
        GroupValues::Numbers(groups) => groups.len(),
        GroupValues::Levels(_, groups) => groups.len(),
    };
    let Some(most) = features.iter().map(groups).max() else {
        return Ok(String::new());
    };
    let bar = LINE;
    let tall = bar * i32::try_from(most).unwrap_or(0) + 2 * LINE + EDGE;
    let all = tall * i32::try_from(features.len()).unwrap_or(0);
    drawing(all, &[], |area| {
        for (place, feature) in (0..).zip(features) {
            write(area, &feature.name, (EDGE, place * tall + 2))?;
            let top = place * tall + LINE;
            for group in 0..groups(feature) {
                let line = top + bar * i32::try_from(group).unwrap_or(0);
                write(area, &(group + 1).to_string(), (EDGE, line + 2))?;
            }
            match &feature.values {
                GroupValues::Numbers(groups) => boxes(area, groups, (top, bar))?,
                GroupValues::Levels(levels, groups) => shares(area, levels, groups, (top, bar))?,
            }
        }
        Ok(())
    })
}

#[allow(clippy::cast_possible_truncation)] // pixels
fn boxes(area: &Area<'_>, groups: &[[f64; 5]], (top, bar): (i32, i32)) -> Result<(), FigureError> {
    let Some((low, high)) = extent(groups.iter().flatten().copied()) else {
        return Ok(());
    };
    let spread = (high - low).max(f64::MIN_POSITIVE);
    let x = |value: f64| NUMBER + (f64::from(WIDE) * (value - low) / spread) as i32;
    for (group, points) in groups.iter().enumerate() {
        if points.iter().any(|point| point.is_nan()) {
            continue;
        }
        let line = top + bar * i32::try_from(group).unwrap_or(0);
        let middle = line + bar / 2;
        let whisker = vec![(x(points[0]), middle), (x(points[4]), middle)];
        area.draw(&PathElement::new(whisker, GREY.stroke_width(2)))
            .map_err(fault)?;
        let colour = colour(group);
        let ends = ((x(points[1]), line + 3), (x(points[3]) + 1, line + bar - 3));
        block(area, ends.0, ends.1, colour.mix(0.5).filled())?;
        let median = vec![(x(points[2]), line + 1), (x(points[2]), line + bar - 1)];
        area.draw(&PathElement::new(median, colour.stroke_width(3)))
            .map_err(fault)?;
    }
    let below = top + bar * i32::try_from(groups.len()).unwrap_or(0);
    write(area, &short(low), (NUMBER, below + 2))?;
    write(area, &short(high), (WIDTH - 60, below + 2))
}

#[allow(clippy::cast_possible_truncation)] // pixels
fn shares(
    area: &Area<'_>,
    levels: &[String],
    groups: &[Vec<f64>],
    (top, bar): (i32, i32),
) -> Result<(), FigureError> {
    let shade = |level: usize| 0.85 * (1.0 - level as f64 / levels.len().max(2) as f64) + 0.05;
    for (group, shares) in groups.iter().enumerate() {
        let line = top + bar * i32::try_from(group).unwrap_or(0);
        let mut so_far = 0.0;
        for (level, share) in shares
            .iter()
            .enumerate()
            .filter(|(_, share)| share.is_finite())
        {
            let x = |share: f64| NUMBER + (f64::from(WIDE) * share) as i32;
            let ends = ((x(so_far), line + 2), (x(so_far + share), line + bar - 2));
            block(
                area,
                ends.0,
                ends.1,
                colour(group).mix(shade(level)).filled(),
            )?;
            so_far += share;
        }
    }
    let below = top + bar * i32::try_from(groups.len()).unwrap_or(0);
    write(area, &levels.join(" | "), (NUMBER, below + 2))
}

/// A number in few digits.
fn short(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        size if !(1e-3..1e6).contains(&size) => format!("{value:.1e}"),
        size if size >= 100.0 => format!("{value:.0}"),
        _ => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_group_and_feature_is_named_and_nothing_is_drawn_of_nothing() {
        let score = |groups: usize| GroupScore {
            groups,
            bias: 1.0 / groups as f64,
            stability: vec![0.8; groups],
            by_chance: Some(0.4),
        };
        let svg = group_scores(&[score(2), score(3)], 0.6).unwrap();
        assert!(svg.contains("bias") && svg.contains("by chance") && svg.contains("asked for"));
        let map = heat_map(&[vec![0.0, 1.0], vec![1.0, 0.0]], &[1, 1], 1.0).unwrap();
        assert_eq!(map.matches("\n2\n").count(), 2, "{map}");
        // The ground, two near cells and two frames.
        assert_eq!(map.matches("<rect").count(), 5);
        let marks = vec![vec![(0.5, true), (f64::NAN, false)]];
        let svg = group_marks(&["age".to_owned(), "sex".to_owned()], &marks).unwrap();
        assert!(svg.contains("age") && svg.contains('\u{25cf}') && svg.contains("0.50"));
        let features = [
            GroupFeature {
                name: "age".to_owned(),
                values: GroupValues::Numbers(vec![[1.0, 2.0, 3.0, 4.0, 5.0], [f64::NAN; 5]]),
            },
            GroupFeature {
                name: "sex".to_owned(),
                values: GroupValues::Levels(
                    vec!["female".to_owned(), "male".to_owned()],
                    vec![vec![0.25, 0.75], vec![f64::NAN; 2]],
                ),
            },
        ];
        let svg = group_features(&features).unwrap();
        assert!(svg.contains("age") && svg.contains("female | male"));
        for empty in [
            group_scores(&[], 0.6),
            heat_map(&[], &[], 1.0),
            group_marks(&[], &[]),
            group_features(&[]),
        ] {
            assert_eq!(empty.unwrap(), "");
        }
    }
}
