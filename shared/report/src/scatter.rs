//! Patients in a plane, by group or by value: a figure that stays at its site.

use crate::figures::{
    Area, EDGE, Entry, FONT, FigureError, GREY, INK, Mark, PALETTE, drawing, extent, fault,
};
use plotters::prelude::*;

/// Height without the key, in pixels.
const HEIGHT: i32 = 340;

/// Points in the colour of their group; `groups` has one code into `names` a point.
///
/// # Errors
/// [`FigureError`].
pub fn scatter_by_group(
    points: &[[f64; 2]],
    groups: &[u32],
    names: &[String],
) -> Result<String, FigureError> {
    let colour = |code: usize| PALETTE[code % PALETTE.len()];
    let entries = names.iter().enumerate().map(|(code, name)| Entry {
        name,
        colour: colour(code),
        mark: Mark::Dot,
    });
    let key: Vec<Entry<'_>> = entries.collect();
    drawing(HEIGHT, &key, |area| {
        let mut chart = plane(area, points)?;
        for code in 0..names.len() {
            let of_code = |group: u32| group as usize == code;
            let members = points.iter().zip(groups);
            let members = members.filter(|(_, group)| of_code(**group));
            chart
                .draw_series(members.map(|(point, _)| {
                    Circle::new((point[0], point[1]), 3, colour(code).mix(0.7).filled())
                }))
                .map_err(fault)?;
        }
        Ok(())
    })
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
    let name = format!("{name}: light low, dark high");
    let key = Entry {
        name: &name,
        colour: INK,
        mark: Mark::Dot,
    };
    drawing(HEIGHT, &[key], |area| {
        let mut chart = plane(area, points)?;
        chart
            .draw_series(points.iter().zip(values).map(|(point, value)| {
                let share = 0.15 + 0.85 * (value - low) / spread;
                Circle::new((point[0], point[1]), 3, INK.mix(share).filled())
            }))
            .map_err(fault)?;
        Ok(())
    })
}

type Plane<'a, 's> = ChartContext<
    'a,
    SVGBackend<'s>,
    Cartesian2d<plotters::coord::types::RangedCoordf64, plotters::coord::types::RangedCoordf64>,
>;

fn plane<'a, 's>(area: &'a Area<'s>, points: &[[f64; 2]]) -> Result<Plane<'a, 's>, FigureError> {
    let range = |axis: usize| {
        let (low, high) = extent(points.iter().map(|point| point[axis])).unwrap_or((0.0, 0.0));
        let margin = ((high - low) * 0.05).max(1e-6);
        low - margin..high + margin
    };
    let mut chart = ChartBuilder::on(area)
        .margin(EDGE)
        .x_label_area_size(44)
        .y_label_area_size(60)
        .build_cartesian_2d(range(0), range(1))
        .map_err(fault)?;
    chart
        .configure_mesh()
        .x_desc("first coordinate")
        .y_desc("second coordinate")
        .x_labels(6)
        .label_style(FONT)
        .light_line_style(TRANSPARENT)
        .bold_line_style(GREY.mix(0.5))
        .draw()
        .map_err(fault)?;
    Ok(chart)
}
