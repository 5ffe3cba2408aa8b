//! Figures of groups of patients: how many there are, how near they are to each other, and what marks each. They stay at their site.

use crate::figures::{FigureError, GREY, INK, PALETTE, SECOND, extent, fault};
use plotters::coord::Shift;
use plotters::prelude::*;

const FONT: (&str, i32) = ("sans-serif", 14);
/// Longer names are cut.
const NAME_MAX: usize = 28;
/// Room for the features' names.
const NAMES: i32 = 220;
/// Height of a line of text, in pixels.
const LINE: i32 = 22;
/// Side of a heat map of patients.
const SIDE: i32 = 400;

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

type Area<'s> = DrawingArea<SVGBackend<'s>, Shift>;

fn canvas(svg: &mut String, width: i32, height: i32) -> Result<Area<'_>, FigureError> {
    let size = (width.unsigned_abs(), height.unsigned_abs());
    let area = SVGBackend::with_string(svg, size).into_drawing_area();
    area.fill(&WHITE).map_err(fault)?;
    Ok(area)
}

fn write(area: &Area<'_>, text: &str, at: (i32, i32)) -> Result<(), FigureError> {
    let text = crate::words::cut(text, NAME_MAX);
    area.draw(&Text::new(text, at, FONT)).map_err(fault)
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
    let mut svg = String::new();
    {
        let whole = canvas(&mut svg, 540, 520)?;
        let (above, below) = whole.split_vertically(230);
        let bias = scores.iter().map(|one| (one.groups as f64, one.bias));
        let panel = Panel {
            x: (low, high),
            most: most.max(f64::MIN_POSITIVE) * 1.08,
            name: "bias",
        };
        panel.draw(&above, &[("bias", INK, bias.collect(), true)])?;
        let each = scores.iter().flat_map(|one| {
            one.stability
                .iter()
                .map(|stability| (one.groups as f64, *stability))
        });
        let least = scores.iter().map(|one| {
            (
                one.groups as f64,
                one.stability.iter().copied().fold(1.0, f64::min),
            )
        });
        let chance = scores
            .iter()
            .filter_map(|one| Some((one.groups as f64, one.by_chance?)));
        let panel = Panel {
            x: (low, high),
            most: 1.05,
            name: "found again (Jaccard)",
        };
        panel.draw(
            &below,
            &[
                (
                    "asked for",
                    GREY,
                    vec![(low, threshold), (high, threshold)],
                    true,
                ),
                ("each group", INK, each.collect(), false),
                ("the least stable", INK, least.collect(), true),
                ("by chance", SECOND, chance.collect(), true),
            ],
        )?;
    }
    Ok(svg)
}

struct Panel<'n> {
    x: (f64, f64),
    most: f64,
    name: &'n str,
}

/// A name, a colour, points, and whether a line joins them.
type Series<'n> = (&'n str, RGBColor, Vec<(f64, f64)>, bool);

impl Panel<'_> {
    fn draw(&self, area: &Area<'_>, series: &[Series<'_>]) -> Result<(), FigureError> {
        let mut chart = ChartBuilder::on(area)
            .margin(8)
            .x_label_area_size(40)
            .y_label_area_size(72)
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
        for (name, colour, points, is_line) in series.iter().filter(|one| !one.2.is_empty()) {
            let (colour, is_line) = (*colour, *is_line);
            let line = if is_line { points.clone() } else { Vec::new() };
            let dots = if colour == GREY {
                &[]
            } else {
                points.as_slice()
            };
            chart
                .draw_series(LineSeries::new(line, colour.stroke_width(2)))
                .map_err(fault)?
                .label(*name)
                .legend(move |(x, y)| match is_line {
                    true => PathElement::new(vec![(x, y), (x + 18, y)], colour.stroke_width(2))
                        .into_dyn(),
                    false => Circle::new((x + 9, y), 3, colour.filled()).into_dyn(),
                });
            chart
                .draw_series(
                    dots.iter()
                        .map(|point| Circle::new(*point, 3, colour.filled())),
                )
                .map_err(fault)?;
        }
        if series.len() > 1 {
            chart
                .configure_series_labels()
                .position(SeriesLabelPosition::LowerLeft)
                .background_style(WHITE.mix(0.85))
                .label_font(FONT)
                .draw()
                .map_err(fault)?;
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
    let (left, top) = (80, 40);
    let place = |row: i32| SIDE * row / rows;
    let mut svg = String::new();
    {
        let area = canvas(&mut svg, left + SIDE + 12, top + SIDE + 12)?;
        for (i, row) in (0..).zip(cells) {
            for (j, apart) in (0..).zip(row) {
                let near = (1.0 - apart / farthest).clamp(0.0, 1.0).sqrt();
                if near > 0.0 {
                    let from = (left + place(j), top + place(i));
                    let to = (left + place(j + 1), top + place(i + 1));
                    block(&area, from, to, INK.mix(near).filled())?;
                }
            }
        }
        let mut first = 0;
        for (group, count) in counts.iter().enumerate() {
            let next = first + i32::try_from(*count).unwrap_or(0);
            let (from, to) = (place(first), place(next));
            block(
                &area,
                (left + from, top + from),
                (left + to, top + to),
                SECOND.stroke_width(1),
            )?;
            let middle = i32::midpoint(from, to) - 8;
            write(&area, &format!("group {}", group + 1), (8, top + middle))?;
            write(&area, &(group + 1).to_string(), (left + middle, 14))?;
            first = next;
        }
    }
    Ok(svg)
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
    let wide = 72;
    let at = |line: usize| 40 + LINE * i32::try_from(line).unwrap_or(0);
    let across = |group: usize| NAMES + wide * i32::try_from(group).unwrap_or(0);
    let mut svg = String::new();
    {
        let area = canvas(&mut svg, across(groups) + 12, at(lines) + 12)?;
        for (group, of_group) in marks.iter().enumerate() {
            write(
                &area,
                &format!("group {}", group + 1),
                (across(group) + 8, 14),
            )?;
            for (line, (distance, is_mark)) in of_group.iter().enumerate() {
                let (left, top) = (across(group), at(line));
                let share = (distance / most).clamp(0.0, 1.0);
                let share = if share.is_nan() { 0.0 } else { share };
                block(
                    &area,
                    (left, top),
                    (left + wide - 2, top + LINE - 2),
                    INK.mix(0.75 * share).filled(),
                )?;
                let mark = if *is_mark { " \u{25cf}" } else { "" };
                write(&area, &format!("{distance:.2}{mark}"), (left + 10, top + 3))?;
            }
        }
        for (line, name) in names.iter().enumerate() {
            write(&area, name, (8, at(line) + 3))?;
        }
    }
    Ok(svg)
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
    let bar = 16;
    let tall = bar * i32::try_from(most).unwrap_or(0) + 2 * LINE;
    let mut svg = String::new();
    {
        let all = tall * i32::try_from(features.len()).unwrap_or(0);
        let area = canvas(&mut svg, NAMES + 360, all + LINE)?;
        for (place, feature) in (0..).zip(features) {
            let top = place * tall + LINE;
            write(&area, &feature.name, (8, top))?;
            for group in 0..groups(feature) {
                let line = top + bar * i32::try_from(group).unwrap_or(0);
                write(&area, &format!("{}", group + 1), (NAMES - 16, line))?;
            }
            match &feature.values {
                GroupValues::Numbers(groups) => boxes(&area, groups, (top, bar))?,
                GroupValues::Levels(levels, groups) => shares(&area, levels, groups, (top, bar))?,
            }
        }
    }
    Ok(svg)
}

#[allow(clippy::cast_possible_truncation)] // pixels
fn boxes(area: &Area<'_>, groups: &[[f64; 5]], (top, bar): (i32, i32)) -> Result<(), FigureError> {
    let Some((low, high)) = extent(groups.iter().flatten().copied()) else {
        return Ok(());
    };
    let spread = (high - low).max(f64::MIN_POSITIVE);
    let x = |value: f64| NAMES + 4 + (330.0 * (value - low) / spread) as i32;
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
    write(area, &short(low), (NAMES, below))?;
    write(area, &short(high), (NAMES + 300, below))
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
            let x = |share: f64| NAMES + 4 + (330.0 * share) as i32;
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
    let key = crate::words::cut(&levels.join(" | "), 48);
    area.draw(&Text::new(key, (NAMES, below), FONT))
        .map_err(fault)
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
        assert!(map.contains("group 2"));
        // The ground, two near cells and two frames.
        assert_eq!(map.matches("<rect").count(), 5);
        let marks = vec![vec![(0.5, true), (f64::NAN, false)]];
        let svg = group_marks(&["age".to_owned(), "sex".to_owned()], &marks).unwrap();
        assert!(svg.contains("age") && svg.contains('\u{25cf}') && svg.contains("group 1"));
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
