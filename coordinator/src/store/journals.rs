//! Where the sites' journals ended, as the store keeps it.

use super::{Store, StoreError};
use protocol::message::JournalHead;
use protocol::name::SiteName;
use rusqlite::params;
use std::collections::BTreeMap;

impl Store {
    /// Where each site's journal ended, as far as it was kept. A row that cannot be read is skipped.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn journals(&self) -> Result<BTreeMap<SiteName, JournalHead>, StoreError> {
        let mut statement = self
            .connection
            .prepare("SELECT site, entries, hash FROM journals")?;
        let mut rows = statement.query([])?;
        let mut heads = BTreeMap::new();
        while let Some(row) = rows.next()? {
            let (site, entries, hash): (String, i64, String) =
                (row.get(0)?, row.get(1)?, row.get(2)?);
            if let Ok(site) = SiteName::new(&site) {
                let entries = entries.cast_unsigned();
                heads.insert(site, JournalHead { entries, hash });
            }
        }
        Ok(heads)
    }

    /// Keeps where each site's journal ends.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn keep_journals(
        &mut self,
        heads: &BTreeMap<SiteName, JournalHead>,
    ) -> Result<(), StoreError> {
        let transaction = self.connection.transaction()?;
        for (site, head) in heads {
            transaction.execute(
                "INSERT OR REPLACE INTO journals (site, entries, hash) VALUES (?1, ?2, ?3)",
                params![site.as_str(), head.entries.cast_signed(), head.hash],
            )?;
        }
        transaction.commit()?;
        Ok(())
    }
}
