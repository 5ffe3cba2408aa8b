//! Curves on a logarithmic axis, as SVG text.

use plotters::coord::Shift;
use plotters::prelude::*;

use crate::ExperimentError;

/// Pixels of one panel.
const PANEL: (u32, u32) = (620, 400);
const COLOURS: [RGBColor; 3] = [
    RGBColor(38, 70, 120),
    RGBColor(196, 98, 34),
    RGBColor(70, 130, 80),
];
const GREY: RGBColor = RGBColor(190, 190, 190);
const FONT: &str = "sans-serif";

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
    let mut svg = String::new();
    {
        let size = (PANEL.0 * panels.len() as u32, PANEL.1);
        let whole = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        whole.fill(&WHITE).map_err(fault)?;
        for (area, panel) in whole.split_evenly((1, panels.len())).iter().zip(panels) {
            draw_panel(area, panel)?;
        }
        whole.present().map_err(fault)?;
    }
    Ok(svg)
}

fn draw_panel(
    area: &DrawingArea<SVGBackend<'_>, Shift>,
    panel: &Panel,
) -> Result<(), ExperimentError> {
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
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .margin(12)
        .background_style(WHITE.mix(0.9))
        .border_style(GREY)
        .label_font((FONT, 13))
        .draw()
        .map_err(fault)
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
