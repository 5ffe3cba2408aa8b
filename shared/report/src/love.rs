//! A love plot: how far two groups are apart in each feature, before and after matching.

use crate::figures::{
    EDGE, Entry, FONT, FigureError, GREY, INK, Mark, SECOND, drawing, fault, write,
};
use plotters::prelude::*;

/// Height of a feature's name and of its circles below, in pixels.
const ROW: i32 = 36;
/// Customary border of what counts as balanced.
const BALANCED: f64 = 0.1;

/// One feature of a love plot.
#[derive(Debug, Clone)]
pub struct LovePoint {
    /// The feature.
    pub name: String,
    /// The standardised difference of means before matching; NaN is not drawn.
    pub before: f64,
    /// After.
    pub after: f64,
}

fn size(value: f64) -> Option<f64> {
    Some(value.abs()).filter(|size| size.is_finite())
}

/// Absolute standardised differences, the largest before matching on top, with a line at 0.1; hollow before, filled
/// after. Empty without a feature.
///
/// # Errors
/// [`FigureError`].
pub fn love(points: &[LovePoint]) -> Result<String, FigureError> {
    if points.is_empty() {
        return Ok(String::new());
    }
    let mut sorted: Vec<&LovePoint> = points.iter().collect();
    sorted.sort_by(|a, b| {
        let before = |point: &LovePoint| size(point.before).unwrap_or(-1.0);
        before(a).total_cmp(&before(b))
    });
    let sizes = points.iter().flat_map(|point| [point.before, point.after]);
    let most = sizes.filter_map(size).fold(2.0 * BALANCED, f64::max) * 1.05;
    let lines = sorted.len();
    let height = ROW * i32::try_from(lines).unwrap_or(0) + 60;
    let entry = |name, colour, mark| Entry { name, colour, mark };
    let key = [
        entry("before", SECOND, Mark::Ring),
        entry("after", INK, Mark::Dot),
    ];
    drawing(height, &key, |area| {
        let mut chart = ChartBuilder::on(area)
            .margin(EDGE)
            .x_label_area_size(44)
            // Room for half of the first number.
            .y_label_area_size(2 * EDGE)
            .build_cartesian_2d(0.0..most, 0.0..lines as f64)
            .map_err(fault)?;
        chart
            .configure_mesh()
            .disable_y_mesh()
            .disable_y_axis()
            .x_desc("absolute standardised difference")
            .x_labels(6)
            .label_style(FONT)
            .light_line_style(TRANSPARENT)
            .bold_line_style(GREY.mix(0.5))
            .draw()
            .map_err(fault)?;
        let ends = [(BALANCED, 0.0), (BALANCED, lines as f64)];
        chart
            .draw_series(LineSeries::new(ends, GREY.stroke_width(2)))
            .map_err(fault)?;
        let places = || sorted.iter().zip(0..lines);
        let circles = |value: fn(&LovePoint) -> f64, style: ShapeStyle| {
            places().filter_map(move |(point, place)| {
                let size = size(value(point))?;
                Some(Circle::new((size, place as f64 + 0.25), 5, style))
            })
        };
        chart
            .draw_series(circles(|point| point.before, SECOND.stroke_width(2)))
            .map_err(fault)?;
        chart
            .draw_series(circles(|point| point.after, INK.filled()))
            .map_err(fault)?;
        for (point, place) in places() {
            let (_, line) = chart.backend_coord(&(0.0, place as f64 + 1.0));
            write(area, &point.name, (EDGE, line + 2))?;
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_feature_has_its_name_and_two_circles_and_nothing_is_drawn_of_nothing() {
        let point = |name: &str, before, after| LovePoint {
            name: name.to_owned(),
            before,
            after,
        };
        let svg = love(&[
            point("age", -0.6, 0.05),
            point("sex: female", 0.2, f64::NAN),
        ])
        .unwrap();
        assert!(svg.contains("age") && svg.contains("sex: female"));
        // Three of the features, and two of the key.
        assert_eq!(svg.matches("<circle").count(), 5);
        assert_eq!(love(&[]).unwrap(), "");
    }
}
