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
        let fits = match page {
            // Every value takes a byte at least, and the decoder makes room for as many as there are said to be.
            Page::DictionaryPage {
                buf, num_values, ..
            } => *num_values as usize <= buf.len(),
            Page::DataPageV2 {
                buf,
                def_levels_byte_len,
                rep_levels_byte_len,
                ..
            } => def_levels_byte_len
                .checked_add(*rep_levels_byte_len)
                .is_some_and(|length| length as usize <= buf.len()),
            Page::DataPage { .. } => true,
        };
        if fits && (self.has_dictionary || !needs_dictionary) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    /// One page alone.
    struct One(Option<Page>);

    impl Iterator for One {
        type Item = Result<Page>;

        fn next(&mut self) -> Option<Self::Item> {
            self.0.take().map(Ok)
        }
    }

    impl PageReader for One {
        fn get_next_page(&mut self) -> Result<Option<Page>> {
            Ok(self.0.take())
        }

        fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
            Ok(None)
        }

        fn skip_next_page(&mut self) -> Result<()> {
            Ok(())
        }
    }

    /// Fuzzing found one of 822 bytes for which the decoder wanted 30 GB.
    #[test]
    fn a_dictionary_of_more_values_than_bytes_is_damaged() {
        for (num_values, is_whole) in [(3, true), (15, true), (16, false), (u32::MAX, false)] {
            let page = Page::DictionaryPage {
                buf: Bytes::from(vec![0; 15]),
                num_values,
                encoding: Encoding::PLAIN,
                is_sorted: false,
            };
            let read = Pages::new(Box::new(One(Some(page)))).get_next_page();
            assert_eq!(read.is_ok(), is_whole, "{num_values}");
        }
    }
}
