//! Survival of groups: stepped curves with bands of 95 %, a stroke for each time at which patients were censored, and below the axis the
//! numbers at risk. Of what is known at some times alone, lines join the points.

use crate::figures::{
    Area, EDGE, Entry, FONT, FigureError, GREY, LETTER, LINE, Mark, PALETTE, WIDTH, drawing, fault,
    write,
};
use crate::plots::HEIGHT;
use plotters::coord::ranged1d::{BoldPoints, Ranged};
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use protocol::cohort::OutcomeSpecification;
use std::collections::BTreeSet;

/// Labels of the axis of time.
const TIMES: usize = 6;
/// Half the height of a stroke for the censored, in pixels.
const STROKE: i32 = 4;
/// Strokes across the width of the figure, at most: two of them would be one.
const STROKES: f64 = 300.0;

/// Survival of a group.
#[derive(Debug, Clone)]
pub struct SurvivalCurve {
    /// What the key says.
    pub name: String,
    /// The curve, from 1 at time 0, by rising time.
    pub points: Vec<SurvivalPoint>,
    /// When patients were censored, and the curve there.
    pub censored: Vec<(f64, f64)>,
    /// What is known of its patients.
    pub known: Known,
}

/// What is known of the patients of a curve.
#[derive(Debug, Clone)]
pub enum Known {
    /// When each was last seen, rising.
    Patients(Vec<f64>),
    /// At each point how many are at risk, in words.
    Points(Vec<String>),
}

/// A point of such a curve.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SurvivalPoint {
    /// When.
    pub time: f64,
    /// The share without an event after it.
    pub share: f64,
    /// The lower end of its interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl SurvivalCurve {
    /// The numbers at risk: at the labels of the axis, or at its points.
    fn at_risk(&self, labels: &[f64]) -> Vec<(f64, String)> {
        match &self.known {
            Known::Patients(followed) => {
                let left =
                    |time: f64| followed.len() - followed.partition_point(|seen| *seen < time);
                labels
                    .iter()
                    .map(|time| (*time, left(*time).to_string()))
                    .collect()
            }
            Known::Points(numbers) => {
                let both = self.points.iter().zip(numbers);
                both.map(|(point, number)| (point.time, number.clone()))
                    .collect()
            }
        }
    }

    /// The corners of its steps: each stands between the point before and the point at its time. Of points alone they are themselves.
    fn stepped(&self, of: fn(&SurvivalPoint) -> f64) -> Vec<(f64, f64)> {
        if let Known::Points(_) = self.known {
            return self
                .points
                .iter()
                .map(|point| (point.time, of(point)))
                .collect();
        }
        let steps = self.points.windows(2);
        let corners = steps.flat_map(|pair| {
            let before = of(&pair[0]);
            [(pair[0].time, before), (pair[1].time, before)]
        });
        let last = self.points.last().map(|last| (last.time, of(last)));
        corners.chain(last).collect()
    }

    /// The edge of its band, there and back.
    fn band(&self) -> Vec<(f64, f64)> {
        let mut edge = self.stepped(|point| point.low);
        edge.extend(self.stepped(|point| point.high).into_iter().rev());
        edge
    }

    /// Its strokes: of those that would be one on the figure the first.
    #[allow(clippy::cast_possible_truncation)] // places on a figure
    fn strokes(&self, last: f64) -> Vec<(f64, f64)> {
        let mut drawn = BTreeSet::new();
        let place = |time: f64| (time / last * STROKES).floor() as i64;
        let strokes = self.censored.iter().copied();
        strokes
            .filter(|(time, _)| drawn.insert(place(*time)))
            .collect()
    }
}

/// Survival of each group by the outcome's time; the axis of time says what is to be `known` of them.
///
/// # Errors
/// [`FigureError`].
pub fn survival(
    groups: &[SurvivalCurve],
    outcome: &OutcomeSpecification,
    known: &str,
) -> Result<String, FigureError> {
    let time = format!("{}{known}", outcome.unit_in_words());
    let event = outcome.event_label();
    let free = match event.strip_prefix("with ") {
        Some(event) => format!("share without {event}"),
        None => format!("share not {event}"),
    };
    let times = groups.iter().flat_map(|group| &group.points);
    let last = times.map(|point| point.time).fold(0.0, f64::max);
    let last = last.max(f64::MIN_POSITIVE);
    let key: Vec<Entry<'_>> = coloured(groups)
        .map(|(group, colour)| Entry {
            name: &group.name,
            colour,
            mark: Mark::Line,
        })
        .collect();
    let rows = i32::try_from(groups.len() + 1).unwrap_or(1);
    drawing(HEIGHT + rows * LINE + EDGE, &key, |area| {
        let mut chart = ChartBuilder::on(&area.split_vertically(HEIGHT).0)
            .margin(EDGE)
            // Half a label of the last time.
            .margin_right(2 * EDGE)
            .x_label_area_size(44)
            .y_label_area_size(60)
            .build_cartesian_2d(0.0..last, 0.0..1.0)
            .map_err(fault)?;
        chart
            .configure_mesh()
            .x_desc(&time)
            .y_desc(&free)
            .x_labels(TIMES)
            .x_label_formatter(&|time| crate::words::figure(*time))
            .label_style(FONT)
            .light_line_style(TRANSPARENT)
            .bold_line_style(GREY.mix(0.5))
            .draw()
            .map_err(fault)?;
        for (group, colour) in coloured(groups) {
            let band = Polygon::new(group.band(), colour.mix(0.15));
            chart.draw_series([band]).map_err(fault)?;
        }
        for (group, colour) in coloured(groups) {
            let line = LineSeries::new(group.stepped(|point| point.share), colour.stroke_width(2));
            chart.draw_series(line).map_err(fault)?;
            let stroke = |at: (f64, f64)| {
                let ends = vec![(0, -STROKE), (0, STROKE)];
                EmptyElement::at(at) + PathElement::new(ends, colour.stroke_width(1))
            };
            let strokes = group.strokes(last).into_iter().map(stroke);
            chart.draw_series(strokes).map_err(fault)?;
            if let Known::Points(_) = group.known {
                let dots = group.points.iter().skip(1);
                let dot = |point: &SurvivalPoint| {
                    Circle::new((point.time, point.share), 4, colour.filled())
                };
                chart.draw_series(dots.map(dot)).map_err(fault)?;
            }
        }
        at_risk(area, chart.plotting_area(), groups)
    })
}

fn coloured(groups: &[SurvivalCurve]) -> impl Iterator<Item = (&SurvivalCurve, RGBColor)> {
    groups.iter().zip(PALETTE.into_iter().cycle())
}

/// The numbers at risk, a line of the key's colour for each group, below the labels of the axis of time.
fn at_risk(
    area: &Area<'_>,
    plotted: &DrawingArea<SVGBackend<'_>, Cartesian2d<RangedCoordf64, RangedCoordf64>>,
    groups: &[SurvivalCurve],
) -> Result<(), FigureError> {
    write(area, "number at risk", (EDGE, HEIGHT))?;
    let times = plotted
        .as_coord_spec()
        .x_spec()
        .key_points(BoldPoints(TIMES));
    for (row, (group, colour)) in (1..).zip(coloured(groups)) {
        let top = HEIGHT + row * LINE;
        let middle = top + LINE / 2;
        let mark = PathElement::new(
            vec![(EDGE, middle), (EDGE + 18, middle)],
            colour.stroke_width(2),
        );
        area.draw(&mark).map_err(fault)?;
        let mut end = 0;
        for (time, number) in group.at_risk(&times) {
            let half = i32::try_from(number.chars().count()).unwrap_or(0) * LETTER / 2 + EDGE / 2;
            let at = plotted.map_coordinate(&(time, 0.0)).0.min(WIDTH - half);
            // What would stand on another number stands in the table alone.
            if at - half < end {
                continue;
            }
            end = at + half;
            let style = TextStyle::from(FONT.into_font()).pos(Pos::new(HPos::Center, VPos::Top));
            let text = Text::new(number, (at, top + 2), style);
            area.draw(&text).map_err(fault)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::cohort::OutcomeKind;

    fn outcome() -> OutcomeSpecification {
        OutcomeSpecification {
            label: "Death".to_owned(),
            unit: "days".to_owned(),
            level_labels: Default::default(),
            column: "days".to_owned(),
            kind: OutcomeKind::Survival {
                event: "died".to_owned(),
                event_values: Vec::new(),
                horizon: None,
                horizons: Vec::new(),
            },
            range: None,
            missing: Vec::new(),
        }
    }

    fn curve() -> SurvivalCurve {
        let point = |time, share, low, high| SurvivalPoint {
            time,
            share,
            low,
            high,
        };
        SurvivalCurve {
            name: "high".to_owned(),
            points: vec![point(0.0, 1.0, 1.0, 1.0), point(4.0, 0.5, 0.2, 0.8)],
            censored: vec![(2.0, 1.0), (2.001, 1.0), (3.0, 1.0)],
            known: Known::Patients(vec![2.0, 2.001, 3.0, 4.0, 4.0]),
        }
    }

    #[test]
    fn curves_are_steps_with_a_band_and_the_censored_are_marked() {
        let curve = curve();
        assert_eq!(
            curve.stepped(|point| point.share),
            [(0.0, 1.0), (4.0, 1.0), (4.0, 0.5)]
        );
        assert_eq!(curve.band().len(), 6);
        // Two who are censored at nearly one time are one stroke.
        assert_eq!(curve.strokes(4.0), [(2.0, 1.0), (3.0, 1.0)]);
        let svg = survival(&[curve], &outcome(), "").unwrap();
        assert!(svg.contains("days") && svg.contains("share without the event"));
        assert!(svg.contains("<polygon") && svg.contains("high"));
    }

    #[test]
    fn numbers_at_risk_stand_below_the_labels_of_their_times() {
        let svg = survival(&[curve()], &outcome(), "").unwrap();
        assert!(svg.contains("number at risk"));
        let texts: Vec<(&str, &str)> = svg
            .split("<text ")
            .skip(1)
            .map(|one| {
                let x = one.split("x=\"").nth(1).unwrap().split('"').next().unwrap();
                let text = one.split_once('>').unwrap().1;
                (x, text.split('<').next().unwrap().trim())
            })
            .collect();
        // At 0 and at 4 all of the five, and the two who were seen to 4.
        let of = |label: &str| {
            let x = texts.iter().find(|(_, text)| *text == label).unwrap().0;
            let own = texts.iter().filter(|(at, text)| *at == x && *text != label);
            own.map(|(_, text)| (*text).to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(of("0"), ["5"]);
        assert_eq!(of("4"), ["2"]);
    }

    #[test]
    fn everything_has_its_own_place_below_the_curves() {
        let (one, two) = (curve(), curve());
        let height = |curves: &[SurvivalCurve]| -> i32 {
            let svg = survival(curves, &outcome(), "").unwrap();
            let height = svg.split("height=\"").nth(1).unwrap();
            height.split('"').next().unwrap().parse().unwrap()
        };
        // A line at risk more; the key of both fits on one.
        let alone = height(std::slice::from_ref(&one));
        assert_eq!(height(&[one, two]), alone + LINE);
    }
}
