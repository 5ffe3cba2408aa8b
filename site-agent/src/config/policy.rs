//! The `[policy]` table of `site.toml`.

use protocol::document::{FromValue, Section};

/// Takes the table's keys, whatever they are.
pub fn read(section: &mut Section<'_, '_>) -> Option<()> {
    section.entries::<Unread>();
    Some(())
}

struct Unread;

impl FromValue for Unread {
    const WANTED: &'static str = "anything";

    fn from_value(_: &toml_span::Value<'_>) -> Option<Self> {
        Some(Self)
    }
}
