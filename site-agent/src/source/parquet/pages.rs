//! The pages of a column, looked at before they are decoded: the decoder takes for granted what a damaged file may lack.

use parquet::basic::Encoding;
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};

/// Hands on pages that are in order.
pub(super) struct Pages {
    inner: Box<dyn PageReader>,
    has_dictionary: bool,
}

impl Pages {
    pub(super) fn new(inner: Box<dyn PageReader>) -> Self {
        Self {
            inner,
            has_dictionary: false,
        }
    }

    fn check(&mut self, page: &Page) -> Result<()> {
        self.has_dictionary |= matches!(page, Page::DictionaryPage { .. });
        let needs_dictionary = matches!(
            page.encoding(),
            Encoding::PLAIN_DICTIONARY | Encoding::RLE_DICTIONARY
        );
        let levels_fit = match page {
            Page::DataPageV2 {
                buf,
                def_levels_byte_len,
                rep_levels_byte_len,
                ..
            } => def_levels_byte_len
                .checked_add(*rep_levels_byte_len)
                .is_some_and(|length| length as usize <= buf.len()),
            _ => true,
        };
        if levels_fit && (self.has_dictionary || !needs_dictionary) {
            return Ok(());
        }
        Err(ParquetError::General("a page that is damaged".to_owned()))
    }
}

impl Iterator for Pages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for Pages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let page = self.inner.get_next_page()?;
        page.iter().try_for_each(|page| self.check(page))?;
        Ok(page)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.inner.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.inner.skip_next_page()
    }
}
