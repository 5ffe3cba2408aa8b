//! Figures as SVG text.

use plotters::coord::ranged1d::{Ranged, ValueFormatter};
use plotters::prelude::*;
use protocol::method::unpsl::model::RoundRow;

/// A figure could not be drawn.
#[derive(Debug, thiserror::Error)]
#[error("a figure could not be drawn: {0}")]
pub struct FigureError(String);

/// So small that its text is read on a phone as well.
const SIZE: (u32, u32) = (540, 300);
pub(super) const INK: RGBColor = RGBColor(38, 70, 120);
pub(super) const SECOND: RGBColor = RGBColor(196, 98, 34);
pub(super) const GREY: RGBColor = RGBColor(190, 190, 190);

/// Colours of groups, one after the other.
pub(super) const PALETTE: [RGBColor; 8] = [
    INK,
    SECOND,
    RGBColor(52, 132, 84),
    RGBColor(140, 60, 120),
    RGBColor(120, 120, 120),
    RGBColor(170, 140, 40),
    RGBColor(60, 140, 170),
    RGBColor(170, 60, 60),
];

struct Curve<'f> {
    name: &'f str,
    colour: RGBColor,
    points: Vec<(f64, f64)>,
}

/// Objective by round.
pub(super) fn objective(rows: &[RoundRow]) -> Result<String, FigureError> {
    let points = rows.iter().filter_map(|row| {
        row.objective
            .map(|objective| (f64::from(row.round), objective))
    });
    let curve = Curve {
        name: "objective",
        colour: INK,
        points: points.collect(),
    };
    let Some((low, high)) = extent(curve.points.iter().map(|point| point.1)) else {
        return Ok(String::new());
    };
    let margin = (high - low).max(high.abs() * 1e-6) * 0.05;
    let mut svg = String::new();
    {
        let area = canvas(&mut svg)?;
        let chart = builder(&area)
            .build_cartesian_2d(rounds(rows), low - margin..high + margin)
            .map_err(fault)?;
        lines(chart, "objective", &[curve])?;
    }
    Ok(svg)
}

/// By round, on a logarithmic axis: of ADMM the primal and the dual residual, else what the model says is left and how far
/// a proximal gradient step would move the metric.
pub(super) fn residuals(rows: &[RoundRow]) -> Result<String, FigureError> {
    let points = |value: fn(&RoundRow) -> Option<f64>| {
        rows.iter()
            .filter_map(|row| Some((f64::from(row.round), value(row)?)))
            .filter(|(_, y)| *y > 0.0)
            .collect()
    };
    let curve = |name, colour, value| Curve {
        name,
        colour,
        points: points(value),
    };
    let is_admm = rows.iter().any(|row| row.primal_residual.is_some());
    let curves = match is_admm {
        true => [
            curve("primal residual", INK, |row| row.primal_residual),
            curve("dual residual", SECOND, |row| row.dual_residual),
        ],
        false => [
            curve("share of the objective that is left", INK, |row| row.left),
            curve("proximal gradient step", SECOND, |row| row.residual),
        ],
    };
    let values = curves
        .iter()
        .flat_map(|curve| curve.points.iter().map(|point| point.1));
    let Some((low, high)) = extent(values) else {
        return Ok(String::new());
    };
    let mut svg = String::new();
    {
        let area = canvas(&mut svg)?;
        let chart = builder(&area)
            .build_cartesian_2d(rounds(rows), (low * 0.8..high * 1.25).log_scale())
            .map_err(fault)?;
        lines(chart, "residual", &curves)?;
    }
    Ok(svg)
}

type Canvas<'s> = DrawingArea<SVGBackend<'s>, plotters::coord::Shift>;

fn canvas(svg: &mut String) -> Result<Canvas<'_>, FigureError> {
    let area = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    area.fill(&WHITE).map_err(fault)?;
    Ok(area)
}

fn builder<'a, 's>(area: &'a Canvas<'s>) -> ChartBuilder<'a, 'a, SVGBackend<'s>> {
    let mut builder = ChartBuilder::on(area);
    builder
        .margin(8)
        .x_label_area_size(38)
        .y_label_area_size(84);
    builder
}

fn lines<'c, 's: 'c, Y>(
    mut chart: ChartContext<
        'c,
        SVGBackend<'s>,
        Cartesian2d<plotters::coord::types::RangedCoordf64, Y>,
    >,
    y_name: &str,
    curves: &[Curve<'_>],
) -> Result<(), FigureError>
where
    Y: Ranged<ValueType = f64> + ValueFormatter<f64> + 'c,
{
    chart
        .configure_mesh()
        .x_desc("round")
        .y_desc(y_name)
        .x_label_formatter(&|round| format!("{round:.0}"))
        .y_label_formatter(&|value| short(*value))
        .label_style(("sans-serif", 13))
        .light_line_style(TRANSPARENT)
        .bold_line_style(GREY.mix(0.5))
        .draw()
        .map_err(fault)?;
    for curve in curves {
        let colour = curve.colour;
        let points = curve.points.iter().copied();
        chart
            .draw_series(LineSeries::new(points.clone(), colour.stroke_width(2)))
            .map_err(fault)?
            .label(curve.name)
            .legend(move |(x, y)| {
                PathElement::new(vec![(x, y), (x + 18, y)], colour.stroke_width(2))
            });
        chart
            .draw_series(points.map(|point| Circle::new(point, 2, colour.filled())))
            .map_err(fault)?;
    }
    if curves.len() > 1 {
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::LowerLeft)
            .background_style(WHITE.mix(0.9))
            .label_font(("sans-serif", 13))
            .draw()
            .map_err(fault)?;
    }
    Ok(())
}

fn rounds(rows: &[RoundRow]) -> std::ops::Range<f64> {
    1.0..rows.last().map_or(2.0, |row| f64::from(row.round.max(2)))
}

pub(super) fn extent(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values
        .filter(|value| value.is_finite())
        .fold(None, |extent, value| match extent {
            None => Some((value, value)),
            Some((low, high)) => Some((low.min(value), high.max(value))),
        })
}

/// Four figures, in powers of ten where that is shorter.
fn short(value: f64) -> String {
    if value == 0.0 || (1e-3..1e5).contains(&value.abs()) {
        let text = format!("{value:.4}");
        return text.trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    format!("{value:.1e}")
}

pub(super) fn fault(error: impl std::fmt::Display) -> FigureError {
    FigureError(error.to_string())
}
