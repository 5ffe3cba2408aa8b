//! Plots of two axes: curves of shares, and what was observed against what was predicted.

use crate::figures::{
    EDGE, Entry, FONT, FigureError, GREY, INK, Mark, PALETTE, drawing, extent, fault,
};
use plotters::prelude::*;

/// Height without the key, in pixels.
pub(crate) const HEIGHT: i32 = 300;

/// A named curve through its points.
#[derive(Debug, Clone)]
pub(crate) struct Curve {
    /// What the key says.
    pub(crate) name: String,
    /// Its points, from left to right.
    pub(crate) points: Vec<(f64, f64)>,
}

/// An axis.
struct Axis<'n> {
    name: &'n str,
    low: f64,
    high: f64,
}

/// A plot to be drawn.
struct Plot<'p> {
    x: Axis<'p>,
    y: Axis<'p>,
    curves: &'p [Curve],
    /// Points without a name.
    points: &'p [(f64, f64)],
    /// Whether equal values of both axes are marked.
    diagonal: bool,
}

/// Curves of shares against shares, with the diagonal; nothing without a curve.
///
/// # Errors
/// [`FigureError`].
pub(crate) fn shares(x: &str, y: &str, curves: &[Curve]) -> Result<String, FigureError> {
    let axis = |name| Axis {
        name,
        low: 0.0,
        high: 1.0,
    };
    match curves {
        [] => Ok(String::new()),
        curves => draw(&Plot {
            x: axis(x),
            y: axis(y),
            curves,
            points: &[],
            diagonal: true,
        }),
    }
}

/// A curve through its points, of any numbers.
///
/// # Errors
/// [`FigureError`].
pub(crate) fn line(x: &str, y: &str, curve: &Curve) -> Result<String, FigureError> {
    let axis = |name, extent: Option<(f64, f64)>| {
        let (low, high) = extent.unwrap_or((0.0, 1.0));
        let high = if low < high { high } else { low + 1.0 };
        Axis { name, low, high }
    };
    draw(&Plot {
        x: axis(x, extent(curve.points.iter().map(|point| point.0))),
        y: axis(y, extent(curve.points.iter().map(|point| point.1))),
        curves: std::slice::from_ref(curve),
        points: &[],
        diagonal: false,
    })
}

/// What was observed (upwards) against what was predicted of `what`, a point a patient; both axes alike.
///
/// # Errors
/// [`FigureError`].
pub fn against(points: &[(f64, f64)], what: &str) -> Result<String, FigureError> {
    let [predicted, observed] = ["predicted", "observed"].map(|which| format!("{what}, {which}"));
    let values = points.iter().flat_map(|point| [point.0, point.1]);
    let (low, high) = extent(values).unwrap_or((0.0, 1.0));
    let margin = ((high - low) * 0.04).max(1e-9);
    let (low, high) = (low - margin, high + margin);
    let [x, y] = [&predicted, &observed].map(|name| Axis { name, low, high });
    draw(&Plot {
        x,
        y,
        curves: &[],
        points,
        diagonal: true,
    })
}

fn draw(plot: &Plot<'_>) -> Result<String, FigureError> {
    let coloured = || plot.curves.iter().zip(PALETTE.iter().cycle());
    let key: Vec<Entry<'_>> = coloured()
        .map(|(curve, colour)| Entry {
            name: &curve.name,
            colour: *colour,
            mark: Mark::Line,
        })
        .collect();
    drawing(HEIGHT, &key, |area| {
        let mut chart = ChartBuilder::on(area)
            .margin(EDGE)
            .x_label_area_size(44)
            .y_label_area_size(60)
            .build_cartesian_2d(plot.x.low..plot.x.high, plot.y.low..plot.y.high)
            .map_err(fault)?;
        chart
            .configure_mesh()
            .x_desc(plot.x.name)
            .y_desc(plot.y.name)
            .x_labels(6)
            .label_style(FONT)
            .light_line_style(TRANSPARENT)
            .bold_line_style(GREY.mix(0.5))
            .draw()
            .map_err(fault)?;
        if plot.diagonal {
            let ends = [(plot.x.low, plot.x.low), (plot.x.high, plot.x.high)];
            let line = LineSeries::new(ends, GREY.stroke_width(2));
            chart.draw_series(line).map_err(fault)?;
        }
        let dots = plot.points.iter();
        chart
            .draw_series(dots.map(|point| Circle::new(*point, 3, INK.mix(0.6).filled())))
            .map_err(fault)?;
        for (curve, colour) in coloured() {
            let points = curve.points.iter().copied();
            chart
                .draw_series(LineSeries::new(points, colour.stroke_width(2)))
                .map_err(fault)?;
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_drawn_of_no_curves() {
        assert_eq!(shares("x", "y", &[]).unwrap(), "");
    }
}
