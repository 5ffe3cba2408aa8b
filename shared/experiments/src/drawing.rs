//! Curves on a logarithmic axis, boxes and coloured matrices, as SVG text.

use ndarray::{Array2, s};
use plotters::coord::Shift;
use plotters::prelude::*;

use crate::ExperimentError;

/// Pixels of one panel.
const PANEL: (u32, u32) = (620, 400);
const COLOURS: [RGBColor; 4] = [
    RGBColor(38, 70, 120),
    RGBColor(196, 98, 34),
    RGBColor(70, 130, 80),
    RGBColor(140, 90, 150),
];
const GREY: RGBColor = RGBColor(190, 190, 190);
const FONT: &str = "sans-serif";

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// One line: a name and a value for each of the iterations 1, 2, ...
pub(crate) struct Curve {
    pub(crate) name: String,
    pub(crate) values: Vec<f64>,
}

/// Curves that share axes.
pub(crate) struct Panel {
    pub(crate) title: String,
    pub(crate) y_name: &'static str,
    pub(crate) curves: Vec<Curve>,
}

/// Panels side by side.
pub(crate) fn draw(panels: &[Panel]) -> Result<String, ExperimentError> {
    svg((PANEL.0 * panels.len() as u32, PANEL.1), |whole| {
        let areas = whole.split_evenly((1, panels.len()));
        let mut drawn = areas.iter().zip(panels);
        drawn.try_for_each(|(area, panel)| draw_panel(area, panel))
    })
}

fn draw_panel(area: &Area<'_>, panel: &Panel) -> Result<(), ExperimentError> {
    let values = || {
        panel
            .curves
            .iter()
            .flat_map(|curve| curve.values.iter().copied())
    };
    let positive = || values().filter(|value| *value > 0.0 && value.is_finite());
    let (low, high) = (
        positive().fold(f64::INFINITY, f64::min),
        positive().fold(0.0, f64::max),
    );
    if high == 0.0 {
        return Err(ExperimentError::Figure("found no value above 0".to_owned()));
    }
    // room for the legend above the curves
    let top = high * (high / low).powf(0.3).max(1.5);
    let last = panel.curves.iter().map(|curve| curve.values.len()).max();
    let last = last.unwrap_or(0).max(2) as f64;
    let mut chart = ChartBuilder::on(area)
        .margin(14)
        .margin_right(24)
        .caption(&panel.title, (FONT, 17))
        .x_label_area_size(42)
        .y_label_area_size(72)
        .build_cartesian_2d(0.0..last, (low * 0.7..top).log_scale())
        .map_err(fault)?;
    chart
        .configure_mesh()
        .x_desc("iteration")
        .y_desc(panel.y_name)
        .x_label_formatter(&|iteration| format!("{iteration:.0}"))
        .y_label_formatter(&|value| power(*value))
        .label_style((FONT, 13))
        .axis_desc_style((FONT, 14))
        .light_line_style(TRANSPARENT)
        .bold_line_style(GREY.mix(0.5))
        .draw()
        .map_err(fault)?;
    for (curve, colour) in panel.curves.iter().zip(COLOURS.iter().cycle()) {
        let points = curve.values.iter().enumerate();
        let points = points
            .filter(|(_, value)| **value > 0.0)
            .map(|(place, value)| (place as f64 + 1.0, *value));
        let style = colour.stroke_width(2);
        chart
            .draw_series(LineSeries::new(points, style))
            .map_err(fault)?
            .label(&curve.name)
            .legend(move |(x, y)| PathElement::new(vec![(x, y), (x + 18, y)], style));
    }
    legend(&mut chart)
}

fn legend<'a, C: CoordTranslate>(
    chart: &mut ChartContext<'a, SVGBackend<'a>, C>,
) -> Result<(), ExperimentError> {
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .margin(10)
        .background_style(WHITE.mix(0.9))
        .border_style(GREY)
        .label_font((FONT, 13))
        .draw()
        .map_err(fault)
}

/// What is drawn on white, as text.
fn svg(
    size: (u32, u32),
    draw: impl FnOnce(&Area<'_>) -> Result<(), ExperimentError>,
) -> Result<String, ExperimentError> {
    let mut svg = String::new();
    {
        let whole = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        whole.fill(&WHITE).map_err(fault)?;
        draw(&whole)?;
        whole.present().map_err(fault)?;
    }
    Ok(svg)
}

/// Distributions side by side, in groups.
pub(crate) struct Boxes {
    pub(crate) title: String,
    pub(crate) groups: Vec<String>,
    /// A name, and of each group its values.
    pub(crate) series: Vec<(&'static str, Vec<Vec<f64>>)>,
    /// A level to compare with.
    pub(crate) line: Option<f64>,
}

/// Panels in rows and columns.
pub(crate) fn boxes(rows: &[Vec<Boxes>]) -> Result<String, ExperimentError> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let size = (PANEL.0 * columns as u32, PANEL.1 * rows.len() as u32);
    svg(size, |whole| {
        let areas = whole.split_evenly((rows.len(), columns));
        for (row, panels) in rows.iter().enumerate() {
            for (column, panel) in panels.iter().enumerate() {
                draw_boxes(&areas[row * columns + column], panel)?;
            }
        }
        Ok(())
    })
}

fn draw_boxes(area: &Area<'_>, panel: &Boxes) -> Result<(), ExperimentError> {
    let all = panel
        .series
        .iter()
        .flat_map(|(_, groups)| groups.iter().flatten().copied());
    let values: Vec<f64> = all
        .chain(panel.line)
        .filter(|value| value.is_finite())
        .collect();
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if values.is_empty() {
        return Err(ExperimentError::Figure("found no finite value".to_owned()));
    }
    let room = 0.08 * (high - low).max(1e-9 * high.abs()).max(f64::MIN_POSITIVE);
    // room for the legend above the boxes
    let top = high + room * if panel.series.len() > 1 { 6.0 } else { 1.0 };
    let groups = panel.groups.len() as f64;
    let mut chart = ChartBuilder::on(area)
        .margin(14)
        .caption(&panel.title, (FONT, 17))
        .x_label_area_size(30)
        .y_label_area_size(64)
        .build_cartesian_2d(0.0..groups, low - room..top)
        .map_err(fault)?;
    // a label stands at the middle of its group
    let name = |place: &f64| {
        let group = panel.groups.get(place.floor() as usize);
        let middle = (place.fract() - 0.5).abs() < 1e-9;
        group.filter(|_| middle).cloned().unwrap_or_default()
    };
    chart
        .configure_mesh()
        .x_labels(2 * panel.groups.len() + 1)
        .x_label_formatter(&name)
        .y_label_formatter(&|value| level(*value, high - low))
        .label_style((FONT, 13))
        .disable_x_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(GREY.mix(0.5))
        .draw()
        .map_err(fault)?;
    if let Some(level) = panel.line {
        let points = [(0.0, level), (groups, level)];
        let line = LineSeries::new(points, BLACK.mix(0.6));
        chart.draw_series(line).map_err(fault)?;
    }
    let share = 1.0 / (panel.series.len() as f64 + 1.0);
    for (place, ((name, of_groups), colour)) in panel.series.iter().zip(COLOURS).enumerate() {
        let drawn = of_groups.iter().enumerate().flat_map(|(group, values)| {
            let at = group as f64 + share * (place as f64 + 1.0);
            outline(at, 0.3 * share, values)
        });
        let drawn = drawn.map(|line| PathElement::new(line, colour.stroke_width(2)));
        let series = chart.draw_series(drawn).map_err(fault)?;
        if panel.series.len() > 1 {
            series.label(*name).legend(move |(x, y)| {
                Rectangle::new([(x, y - 5), (x + 14, y + 5)], colour.stroke_width(2))
            });
        }
    }
    match panel.series.len() > 1 {
        true => legend(&mut chart),
        false => Ok(()),
    }
}

/// The lines of a box and its whiskers.
fn outline(at: f64, half: f64, values: &[f64]) -> Vec<Vec<(f64, f64)>> {
    let Some([least, first, middle, third, most]) = five(values) else {
        return Vec::new();
    };
    let flat = |level: f64, half: f64| vec![(at - half, level), (at + half, level)];
    vec![
        vec![(at, least), (at, first)],
        vec![(at, third), (at, most)],
        flat(least, half / 2.0),
        flat(most, half / 2.0),
        flat(middle, half),
        [flat(first, half), flat(third, -half), flat(first, half)].concat(),
    ]
}

/// The ends of the whiskers (Tukey's: the last values within one and a half times the box's height), the box and the median.
fn five(values: &[f64]) -> Option<[f64; 5]> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    let quantile = |share: f64| {
        let place = share * last as f64;
        let below = sorted[place.floor() as usize];
        let above = sorted[place.ceil() as usize];
        below + place.fract() * (above - below)
    };
    let [first, middle, third] = [0.25, 0.5, 0.75].map(quantile);
    let reach = 1.5 * (third - first);
    let within = |value: &&f64| (first - reach..=third + reach).contains(*value);
    let least = sorted.iter().find(within)?;
    let most = sorted.iter().rev().find(within)?;
    Some([*least, first, middle, third, *most])
}

/// With as many places as tell levels of this range apart.
fn level(value: f64, range: f64) -> String {
    if range >= 1e5 {
        return format!("{value:.1e}");
    }
    let places = (1.0 - range.max(1e-9).log10().floor()).max(0.0) as usize;
    let text = format!("{value:.places$}");
    // not -0.00
    match text.trim_matches(['-', '0', '.']).is_empty() {
        true => "0".to_owned(),
        false => text,
    }
}

/// A matrix of values from 0 to 1.
pub(crate) struct Cells {
    pub(crate) title: String,
    pub(crate) values: Array2<f64>,
}

/// Rows and columns of a matrix that are one cell of its picture.
const CELL: usize = 3;

/// Matrices, so many beside each other: the darker, the larger. Each cell is the mean of three rows and columns.
pub(crate) fn cells(panels: &[Cells], columns: usize) -> Result<String, ExperimentError> {
    let rows = panels.len().div_ceil(columns);
    let (side, head) = (300_u32, 36_u32);
    let size = (side * columns as u32, (side + head) * rows as u32);
    svg(size, |whole| {
        for (area, panel) in whole.split_evenly((rows, columns)).iter().zip(panels) {
            let area = area.titled(&panel.title, (FONT, 15)).map_err(fault)?;
            draw_cells(&area.margin(4, 8, 8, 8), &panel.values)?;
        }
        Ok(())
    })
}

fn draw_cells(area: &Area<'_>, values: &Array2<f64>) -> Result<(), ExperimentError> {
    let (height, width) = values.dim();
    let (down, across) = (height.div_ceil(CELL), width.div_ceil(CELL));
    let (wide, high) = area.dim_in_pixel();
    let at = |place: usize, of: usize, pixels: u32| {
        i32::try_from(place * pixels as usize / of.max(1)).unwrap_or(i32::MAX)
    };
    let end = |place: usize, of: usize| (CELL * (place + 1)).min(of);
    for row in 0..down {
        for column in 0..across {
            let part = values.slice(s![
                CELL * row..end(row, height),
                CELL * column..end(column, width)
            ]);
            let mean = part.sum() / part.len() as f64;
            let corners = [
                (at(column, across, wide), at(row, down, high)),
                (at(column + 1, across, wide), at(row + 1, down, high)),
            ];
            let colour = COLOURS[0].mix(mean.clamp(0.0, 1.0)).filled();
            area.draw(&Rectangle::new(corners, colour)).map_err(fault)?;
        }
    }
    Ok(())
}

/// 0.001 or larger as it is, smaller as a power of ten.
fn power(value: f64) -> String {
    if (1e-3..1e5).contains(&value) {
        let text = format!("{value:.3}");
        return text.trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    format!("{value:.0e}")
}

fn fault(error: impl std::fmt::Display) -> ExperimentError {
    ExperimentError::Figure(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whiskers_end_at_values_and_levels_are_told_apart() {
        // numpy.quantile(..., [0.25, 0.5, 0.75]) is 2, 3, 4: 9 is beyond the whisker
        assert_eq!(
            five(&[1.0, 4.0, 3.0, 2.0, 9.0]),
            Some([1.0, 2.0, 3.0, 4.0, 4.0])
        );
        assert_eq!(five(&[]), None);
        assert_eq!(level(-0.2, 2.0), "-0.2");
        assert_eq!(level(-2e-16, 2.0), "0");
        assert_eq!(level(0.012, 0.01), "0.012");
        assert_eq!(level(4.2e10, 1e10), "4.2e10");
    }
}
