//! Estimates with their intervals, a line each.

use crate::figures::{EDGE, FONT, FigureError, GREY, INK, drawing, fault, write};
use plotters::prelude::*;

/// Height of an estimate's name and of its interval below, in pixels.
const ROW: i32 = 36;
/// Estimates that a figure holds.
pub(crate) const DRAWN_MAX: usize = 30;

/// An estimate with its interval.
pub(crate) struct Drawn {
    pub(crate) name: String,
    pub(crate) value: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

/// Estimates from top to bottom, at most [`DRAWN_MAX`], each with its interval, and a line where `none` says that there is no
/// effect; on an axis of ratios where `are_ratios`. Nothing without an estimate.
///
/// # Errors
/// [`FigureError`].
pub(crate) fn estimates(
    drawn: &[Drawn],
    axis: &str,
    none: f64,
    are_ratios: bool,
) -> Result<String, FigureError> {
    let drawn = &drawn[..drawn.len().min(DRAWN_MAX)];
    let scaled = |value: f64| if are_ratios { value.log2() } else { value };
    let ends = drawn.iter().flat_map(|one| [one.low, one.high]).map(scaled);
    let ends = ends.filter(|end| end.is_finite()).chain([scaled(none)]);
    let (low, high) = ends.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), end| {
        (low.min(end), high.max(end))
    });
    let margin = ((high - low) * 0.06).max(1e-9);
    if drawn.is_empty() {
        return Ok(String::new());
    }
    let lines = drawn.len();
    let height = ROW * i32::try_from(lines).unwrap_or(0) + 60;
    drawing(height, &[], |area| {
        let mut chart = ChartBuilder::on(area)
            .margin(EDGE)
            .x_label_area_size(44)
            // Room for half of the first number.
            .y_label_area_size(2 * EDGE)
            .build_cartesian_2d(low - margin..high + margin, 0.0..lines as f64)
            .map_err(fault)?;
        let label = |value: &f64| {
            let value = if are_ratios { value.exp2() } else { *value };
            crate::words::figure(value)
        };
        chart
            .configure_mesh()
            .disable_y_mesh()
            .disable_y_axis()
            .x_labels(5)
            .x_label_formatter(&label)
            .x_desc(axis)
            .label_style(FONT)
            .light_line_style(TRANSPARENT)
            .bold_line_style(GREY.mix(0.5))
            .draw()
            .map_err(fault)?;
        let line = [(scaled(none), 0.0), (scaled(none), lines as f64)];
        chart
            .draw_series(LineSeries::new(line, GREY.stroke_width(2)))
            .map_err(fault)?;
        for (place, one) in drawn.iter().enumerate() {
            let top = (lines - place) as f64;
            // The name needs three fifths of the row.
            let at = |value: f64| (scaled(value), top - 0.75);
            let [low, value, high] = [one.low, one.value, one.high].map(at);
            if [low.0, value.0, high.0].iter().all(|end| end.is_finite()) {
                chart
                    .draw_series(LineSeries::new([low, high], INK.stroke_width(2)))
                    .map_err(fault)?;
                chart
                    .draw_series([Circle::new(value, 4, INK.filled())])
                    .map_err(fault)?;
            }
            let (_, line) = chart.backend_coord(&(0.0, top));
            write(area, &one.name, (EDGE, line + 2))?;
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_estimate_has_its_name_its_interval_and_a_point_and_nothing_is_drawn_of_nothing() {
        let drawn = |name: &str, value: f64| Drawn {
            name: name.to_owned(),
            value,
            low: value / 2.0,
            high: value * 2.0,
        };
        let all = [drawn("age", 1.5), drawn("sex: female", 0.5)];
        let svg = estimates(&all, "odds ratio", 1.0, true).unwrap();
        assert!(svg.contains("age") && svg.contains("sex: female"));
        assert_eq!(svg.matches("<circle").count(), 2);
        let long = "Resting ECG: left ventricular hypertrophy by Estes' criteria";
        let svg = estimates(&[drawn(long, 1.5)], "odds ratio", 1.0, true).unwrap();
        assert!(
            svg.contains("Resting ECG: left ventricular hypertrophy by Este…"),
            "{svg}"
        );
        assert_eq!(estimates(&[], "odds ratio", 1.0, true).unwrap(), "");
    }
}
