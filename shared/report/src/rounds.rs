//! Curves by round of a run.

use crate::figures::{
    Area, EDGE, Entry, FONT, FigureError, GREY, INK, Mark, SECOND, drawing, extent, fault,
};
use maud::{Markup, PreEscaped, html};
use plotters::coord::ranged1d::{Ranged, ValueFormatter};
use plotters::prelude::*;
use protocol::method::unpsl::model::RoundRow;
use protocol::progress::Course;

/// Height without the key, in pixels.
const HEIGHT: i32 = 260;

struct Curve<'f> {
    name: &'f str,
    colour: RGBColor,
    points: Vec<(f64, f64)>,
}

/// The curves of rounds as they close: the objective, and what is left; none before there are two.
///
/// # Errors
/// [`FigureError`].
pub fn rounds_so_far(closed: &[Course]) -> Result<Option<Markup>, FigureError> {
    if closed.len() < 2 {
        return Ok(None);
    }
    let row = |course: &Course| RoundRow {
        objective: course.objective,
        left: course.left,
        primal_residual: course.primal_residual,
        dual_residual: course.dual_residual,
        ..RoundRow::new(course.round, 0.0)
    };
    let rows: Vec<RoundRow> = closed.iter().map(row).collect();
    let (objective, residuals) = (objective(&rows)?, residuals(&rows)?);
    let drawings = [objective, residuals].map(PreEscaped);
    Ok(Some(html! {
        @for drawing in drawings.iter().filter(|one| !one.0.is_empty()) { figure { (drawing) } }
    }))
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
    drawing(HEIGHT, &[], |area| {
        let chart = builder(area)
            .build_cartesian_2d(rounds(rows), low - margin..high + margin)
            .map_err(fault)?;
        lines(chart, "objective", &[curve])
    })
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
    let drawn = curves.iter().filter(|curve| !curve.points.is_empty());
    let entry = |curve: &Curve<'static>| Entry {
        name: curve.name,
        colour: curve.colour,
        mark: Mark::Line,
    };
    let key: Vec<Entry<'_>> = drawn.map(entry).collect();
    drawing(HEIGHT, &key, |area| {
        let chart = builder(area)
            .build_cartesian_2d(rounds(rows), (low * 0.8..high * 1.25).log_scale())
            .map_err(fault)?;
        lines(chart, "residual", &curves)
    })
}

fn builder<'a, 's>(area: &'a Area<'s>) -> ChartBuilder<'a, 'a, SVGBackend<'s>> {
    let mut builder = ChartBuilder::on(area);
    builder
        .margin(EDGE)
        .x_label_area_size(44)
        .y_label_area_size(80);
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
        .x_labels(6)
        .x_label_formatter(&|round| format!("{round:.0}"))
        .y_label_formatter(&|value| short(*value))
        .label_style(FONT)
        .light_line_style(TRANSPARENT)
        .bold_line_style(GREY.mix(0.5))
        .draw()
        .map_err(fault)?;
    for curve in curves {
        let colour = curve.colour;
        let points = curve.points.iter().copied();
        chart
            .draw_series(LineSeries::new(points.clone(), colour.stroke_width(2)))
            .map_err(fault)?;
        chart
            .draw_series(points.map(|point| Circle::new(point, 2, colour.filled())))
            .map_err(fault)?;
    }
    Ok(())
}

fn rounds(rows: &[RoundRow]) -> std::ops::Range<f64> {
    1.0..rows.last().map_or(2.0, |row| f64::from(row.round.max(2)))
}

/// Four figures, in powers of ten where that is shorter.
fn short(value: f64) -> String {
    if value == 0.0 || (1e-3..1e5).contains(&value.abs()) {
        let text = format!("{value:.4}");
        return text.trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    format!("{value:.1e}")
}
