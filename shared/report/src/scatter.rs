//! Patients in a plane, by group or by value: a figure that stays at its site.

use super::figures::{FigureError, GREY, INK, PALETTE, extent, fault};
use plotters::prelude::*;

const SIZE: (u32, u32) = (480, 420);
/// Points in the colour of their group; `groups` has one code into `names` a point.
///
/// # Errors
/// [`FigureError`].
pub fn scatter_by_group(
    points: &[[f64; 2]],
    groups: &[u32],
    names: &[String],
) -> Result<String, FigureError> {
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        let mut chart = plane(&area, points)?;
        for (code, name) in (0..).zip(names) {
            let colour = PALETTE[code as usize % PALETTE.len()];
            let members = points
                .iter()
                .zip(groups)
                .filter(|(_, group)| **group == code);
            chart
                .draw_series(members.map(|(point, _)| {
                    Circle::new((point[0], point[1]), 3, colour.mix(0.7).filled())
                }))
                .map_err(fault)?
                .label(name)
                .legend(move |(x, y)| Circle::new((x + 9, y), 4, colour.filled()));
        }
        legend(&mut chart)?;
    }
    Ok(svg)
}

/// Points from light, the lowest of `values`, to dark, the highest; one value a point.
///
/// # Errors
/// [`FigureError`].
pub fn scatter_by_value(
    points: &[[f64; 2]],
    values: &[f64],
    name: &str,
) -> Result<String, FigureError> {
    let (low, high) = extent(values.iter().copied()).unwrap_or((0.0, 1.0));
    let spread = (high - low).max(f64::MIN_POSITIVE);
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        let mut chart = plane(&area, points)?;
        chart
            .draw_series(points.iter().zip(values).map(|(point, value)| {
                let share = 0.15 + 0.85 * (value - low) / spread;
                Circle::new((point[0], point[1]), 3, INK.mix(share).filled())
            }))
            .map_err(fault)?
            .label(format!("{name}: light low, dark high"))
            .legend(|(x, y)| Circle::new((x + 9, y), 4, INK.filled()));
        legend(&mut chart)?;
    }
    Ok(svg)
}

type Plane<'a, 's> = ChartContext<
    'a,
    SVGBackend<'s>,
    Cartesian2d<plotters::coord::types::RangedCoordf64, plotters::coord::types::RangedCoordf64>,
>;

fn legend<'a, 's: 'a>(chart: &mut Plane<'a, 's>) -> Result<(), FigureError> {
    chart
        .configure_series_labels()
        .background_style(WHITE.mix(0.9))
        .label_font(("sans-serif", 15))
        .draw()
        .map_err(fault)
}

fn plane<'a, 's>(
    area: &'a DrawingArea<SVGBackend<'s>, plotters::coord::Shift>,
    points: &[[f64; 2]],
) -> Result<Plane<'a, 's>, FigureError> {
    area.fill(&WHITE).map_err(fault)?;
    let range = |axis: usize| {
        let (low, high) = extent(points.iter().map(|point| point[axis])).unwrap_or((0.0, 0.0));
        let margin = ((high - low) * 0.05).max(1e-6);
        low - margin..high + margin
    };
    let mut chart = ChartBuilder::on(area)
        .margin(8)
        .x_label_area_size(44)
        .y_label_area_size(60)
        .build_cartesian_2d(range(0), range(1))
        .map_err(fault)?;
    chart
        .configure_mesh()
        .x_desc("first coordinate")
        .y_desc("second coordinate")
        .label_style(("sans-serif", 15))
        .light_line_style(TRANSPARENT)
        .bold_line_style(GREY.mix(0.5))
        .draw()
        .map_err(fault)?;
    Ok(chart)
}
