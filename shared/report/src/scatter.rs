//! Patients in a plane, by group or by value: a figure that stays at its site.

use crate::figures::{
    Area, EDGE, Entry, FONT, FigureError, GREY, INK, Mark, PALETTE, Shape, drawing, extent, fault,
    target,
};
use plotters::prelude::*;

/// Height without the key, in pixels.
const HEIGHT: i32 = 340;

/// A patient on a map, and those similar to it.
#[derive(Debug, Clone, Copy)]
pub struct OnMap<'p> {
    /// Where it is.
    pub place: [f64; 2],
    /// What the key calls it.
    pub name: &'p str,
    /// Where the similar are.
    pub similar: &'p [[f64; 2]],
}

/// Points in the colour and shape of their group; `groups` has one code into `names` per point. One patient may be marked among them.
///
/// # Errors
/// [`FigureError`].
pub fn scatter_by_group(
    points: &[[f64; 2]],
    groups: &[u32],
    names: &[String],
    marked: Option<&OnMap<'_>>,
) -> Result<String, FigureError> {
    let colour = |code: usize| PALETTE[code % PALETTE.len()];
    let shape = |code: usize| Shape::ALL[code % Shape::ALL.len()];
    let entries = names.iter().enumerate().map(|(code, name)| Entry {
        name,
        colour: colour(code),
        mark: Mark::Shaped(shape(code)),
    });
    let key: Vec<Entry<'_>> = entries.chain(key_of(marked)).collect();
    drawing(HEIGHT, &key, |area| {
        let chart = plane(area, points, marked)?;
        for code in 0..names.len() {
            let members = points.iter().zip(groups);
            let members = members.filter(|(_, group)| **group as usize == code);
            let style = colour(code).mix(0.7).filled();
            for (point, _) in members {
                shape(code).draw(chart.plotting_area(), (point[0], point[1]), 3, style)?;
            }
        }
        mark(&chart, marked)
    })
}

/// Points from light, the lowest of `values`, to dark, the highest; one value a point. One patient may be marked among them.
///
/// # Errors
/// [`FigureError`].
pub fn scatter_by_value(
    points: &[[f64; 2]],
    values: &[f64],
    name: &str,
    marked: Option<&OnMap<'_>>,
) -> Result<String, FigureError> {
    let (low, high) = extent(values.iter().copied()).unwrap_or((0.0, 1.0));
    let spread = (high - low).max(f64::MIN_POSITIVE);
    let name = format!("{name}: light low, dark high");
    let entry = Entry {
        name: &name,
        colour: INK,
        mark: Mark::Dot,
    };
    let key: Vec<Entry<'_>> = std::iter::once(entry).chain(key_of(marked)).collect();
    drawing(HEIGHT, &key, |area| {
        let mut chart = plane(area, points, marked)?;
        chart
            .draw_series(points.iter().zip(values).map(|(point, value)| {
                let share = 0.15 + 0.85 * (value - low) / spread;
                Circle::new((point[0], point[1]), 3, INK.mix(share).filled())
            }))
            .map_err(fault)?;
        mark(&chart, marked)
    })
}

fn key_of<'p>(marked: Option<&OnMap<'p>>) -> impl Iterator<Item = Entry<'p>> {
    let entry = |name, mark| Entry {
        name,
        colour: BLACK,
        mark,
    };
    let both = marked.map(|one| {
        [
            entry(one.name, Mark::Target),
            entry("the similar", Mark::Ring),
        ]
    });
    both.into_iter().flatten()
}

/// Rings the similar, and shows the patient above all others.
fn mark(chart: &Plane<'_, '_>, marked: Option<&OnMap<'_>>) -> Result<(), FigureError> {
    let Some(marked) = marked else {
        return Ok(());
    };
    let area = chart.plotting_area();
    for [x, y] in marked.similar {
        Shape::Disc.draw(area, (*x, *y), 6, BLACK.stroke_width(1))?;
    }
    target(area, (marked.place[0], marked.place[1]))
}

type Plane<'a, 's> = ChartContext<
    'a,
    SVGBackend<'s>,
    Cartesian2d<plotters::coord::types::RangedCoordf64, plotters::coord::types::RangedCoordf64>,
>;

fn plane<'a, 's>(
    area: &'a Area<'s>,
    points: &[[f64; 2]],
    marked: Option<&OnMap<'_>>,
) -> Result<Plane<'a, 's>, FigureError> {
    let range = |axis: usize| {
        let all = points.iter().chain(marked.map(|one| &one.place));
        let (low, high) = extent(all.map(|point| point[axis])).unwrap_or((0.0, 0.0));
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
