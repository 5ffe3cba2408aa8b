//! What all figures share: width, text and colours, and a key below the drawing, so that it never covers a curve. They are SVG text.

use plotters::coord::{CoordTranslate, Shift};
use plotters::element::Polygon;
use plotters::prelude::*;

/// A figure could not be drawn.
#[derive(Debug, thiserror::Error)]
#[error("a figure could not be drawn: {0}")]
pub struct FigureError(String);

/// As wide as the column of a page on a phone, in pixels, so that text has its own size there; a desktop enlarges figures.
pub(crate) const WIDTH: i32 = 360;
/// In SVG its size is divided by 1.24: text of 12.9 pixels.
pub(crate) const FONT: (&str, i32) = ("sans-serif", 16);
/// Height of a line of text, in pixels.
pub(crate) const LINE: i32 = 20;
/// Between a drawing and its edge, in pixels.
pub(crate) const EDGE: i32 = 8;
/// Width of a letter, on average, in pixels.
pub(crate) const LETTER: i32 = 7;
/// Room for the mark of an entry, in pixels.
const MARK: i32 = 24;

pub(crate) const INK: RGBColor = RGBColor(38, 70, 120);
pub(crate) const SECOND: RGBColor = RGBColor(196, 98, 34);
pub(crate) const GREY: RGBColor = RGBColor(190, 190, 190);

/// Colours of groups, one after the other.
pub(crate) const PALETTE: [RGBColor; 8] = [
    INK,
    SECOND,
    RGBColor(52, 132, 84),
    RGBColor(140, 60, 120),
    RGBColor(120, 120, 120),
    RGBColor(170, 140, 40),
    RGBColor(60, 140, 170),
    RGBColor(170, 60, 60),
];

pub(crate) type Area<'s> = DrawingArea<SVGBackend<'s>, Shift>;

/// The shape by which a key explains an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    Line,
    Dot,
    Ring,
    /// Of a group that has a shape of its own, as well as a colour.
    Shaped(Shape),
    /// The one patient that a map is about.
    Target,
}

/// The shape of a point: colour alone says nothing to whoever cannot see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    Disc,
    Triangle,
    Square,
    Diamond,
    Cross,
}

impl Shape {
    /// That of groups, one after the other.
    pub(crate) const ALL: [Self; 5] = [
        Self::Disc,
        Self::Triangle,
        Self::Square,
        Self::Diamond,
        Self::Cross,
    ];

    /// Its corners around the middle, for so large a radius; none of a disc.
    fn corners(self, radius: i32) -> Vec<(i32, i32)> {
        let (one, half) = (radius, radius / 2);
        match self {
            Self::Disc => Vec::new(),
            Self::Triangle => vec![(0, -one), (one, one), (-one, one)],
            Self::Square => vec![(-one, -one), (one, -one), (one, one), (-one, one)],
            Self::Diamond => vec![
                (0, -one - half),
                (one + half, 0),
                (0, one + half),
                (-one - half, 0),
            ],
            Self::Cross => {
                let (near, far) = (half.max(1), one + half);
                let quarter = [(near, near), (far, near), (far, -near)];
                let opposite = quarter.map(|(x, y)| (-x, -y));
                let turned = |corners: [(i32, i32); 3]| corners.map(|(x, y)| (y, -x));
                [quarter, turned(quarter), opposite, turned(opposite)].concat()
            }
        }
    }

    /// Draws it.
    pub(crate) fn draw<'s, C: CoordTranslate>(
        self,
        on: &DrawingArea<SVGBackend<'s>, C>,
        at: C::From,
        radius: i32,
        style: ShapeStyle,
    ) -> Result<(), FigureError>
    where
        C::From: Clone,
    {
        match self {
            Self::Disc => on.draw(&(EmptyElement::at(at) + Circle::new((0, 0), radius, style))),
            Self::Triangle | Self::Square | Self::Diamond | Self::Cross => {
                let corners = self.corners(radius);
                on.draw(&(EmptyElement::at(at) + Polygon::new(corners, style)))
            }
        }
        .map_err(fault)
    }
}

/// An entry of a key.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry<'n> {
    pub(crate) name: &'n str,
    pub(crate) colour: RGBColor,
    pub(crate) mark: Mark,
}

/// What `draw` draws on an area of `height` pixels, and its key below.
///
/// # Errors
/// [`FigureError`].
pub(crate) fn drawing(
    height: i32,
    key: &[Entry<'_>],
    draw: impl FnOnce(&Area<'_>) -> Result<(), FigureError>,
) -> Result<String, FigureError> {
    let places = places(key);
    let below = places.last().map_or(0, |(_, line)| line + LINE + EDGE);
    let mut svg = String::new();
    {
        let size = (WIDTH.unsigned_abs(), (height + below).unsigned_abs());
        let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        area.fill(&WHITE).map_err(fault)?;
        draw(&area.margin(0, below, 0, 0))?;
        for (entry, (left, line)) in key.iter().zip(places) {
            draw_entry(&area, entry, (left, height + line))?;
        }
    }
    Ok(svg)
}

/// Where each entry begins below the drawing: from left to right, on as many lines as they need.
fn places(key: &[Entry<'_>]) -> Vec<(i32, i32)> {
    let mut next = (EDGE, 0);
    let place = |entry: &Entry<'_>| {
        let letters = i32::try_from(entry.name.chars().count()).unwrap_or(i32::MAX / LETTER);
        let wide = MARK + LETTER.saturating_mul(letters) + EDGE;
        if next.0 > EDGE && next.0.saturating_add(wide) > WIDTH {
            next = (EDGE, next.1 + LINE);
        }
        let place = next;
        next.0 = next.0.saturating_add(wide);
        place
    };
    key.iter().map(place).collect()
}

fn draw_entry(
    area: &Area<'_>,
    entry: &Entry<'_>,
    (left, line): (i32, i32),
) -> Result<(), FigureError> {
    let middle = line + LINE / 2;
    let (colour, centre) = (entry.colour, (left + 9, middle));
    match entry.mark {
        Mark::Line => area
            .draw(&PathElement::new(
                vec![(left, middle), (left + 18, middle)],
                colour.stroke_width(2),
            ))
            .map_err(fault)?,
        Mark::Dot => Shape::Disc.draw(area, centre, 5, colour.filled())?,
        Mark::Ring => Shape::Disc.draw(area, centre, 5, colour.stroke_width(2))?,
        Mark::Shaped(shape) => shape.draw(area, centre, 4, colour.filled())?,
        Mark::Target => target(area, centre)?,
    }
    write(area, entry.name, (left + MARK, line + 2))
}

/// A ring with a cross through it.
pub(crate) fn target<C: CoordTranslate>(
    on: &DrawingArea<SVGBackend<'_>, C>,
    at: C::From,
) -> Result<(), FigureError>
where
    C::From: Clone,
{
    Shape::Disc.draw(on, at.clone(), 7, BLACK.stroke_width(2))?;
    for ends in [[(-9, 0), (9, 0)], [(0, -9), (0, 9)]] {
        let line = PathElement::new(ends.to_vec(), BLACK.stroke_width(2));
        on.draw(&(EmptyElement::at(at.clone()) + line))
            .map_err(fault)?;
    }
    Ok(())
}

/// Writes text from a place on, cut where the drawing ends.
pub(crate) fn write(area: &Area<'_>, text: &str, at: (i32, i32)) -> Result<(), FigureError> {
    let letters = usize::try_from((WIDTH - at.0) / LETTER).unwrap_or(0);
    let text = crate::words::cut(text, letters);
    area.draw(&Text::new(text, at, FONT)).map_err(fault)
}

/// The least and the largest finite value.
pub(crate) fn extent(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values
        .filter(|value| value.is_finite())
        .fold(None, |extent, value| match extent {
            None => Some((value, value)),
            Some((low, high)) => Some((low.min(value), high.max(value))),
        })
}

pub(crate) fn fault(error: impl std::fmt::Display) -> FigureError {
    FigureError(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_below_the_drawing_and_no_entry_leaves_it() {
        let entry = |name| Entry {
            name,
            colour: INK,
            mark: Mark::Line,
        };
        let long =
            "nearest by a distance with a very long name indeed, which is longer than any line is";
        let key = ["patients", "events", "nearest by Euclidean distance", long].map(entry);
        let places = places(&key);
        assert_eq!(places[..2], [(8, 0), (96, 0)]);
        assert_eq!(places[2..], [(8, 20), (8, 40)]);
        let svg = drawing(100, &key, |_| Ok(())).unwrap();
        assert!(svg.contains("height=\"168\""), "{svg}");
        assert!(svg.contains("events") && !svg.contains("than any line is"));
        assert!(
            drawing(100, &[], |_| Ok(()))
                .unwrap()
                .contains("height=\"100\"")
        );
    }
}
