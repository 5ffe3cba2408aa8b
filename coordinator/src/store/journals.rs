//! Where the sites' journals ended, as the store keeps it.

use super::{Store, StoreError};
use protocol::message::JournalHead;
use protocol::name::SiteName;
use std::collections::BTreeMap;

impl Store {
    /// Where each site's journal ended, as far as it was kept. A row that cannot be read is skipped.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn journals(&self) -> Result<BTreeMap<SiteName, JournalHead>, StoreError> {
        let sql = "SELECT site, entries, hash FROM journals";
        let mut heads = BTreeMap::new();
        for mut row in self.database.rows(sql, &[])? {
            let (site, entries, hash): (String, u64, String) =
                (row.take(0)?, row.take(1)?, row.take(2)?);
            if let Ok(site) = SiteName::new(&site) {
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
        let transaction = self.database.begin()?;
        for (site, head) in heads {
            transaction.execute(
                "INSERT INTO journals (site, entries, hash) VALUES (?1, ?2, ?3)
                 ON CONFLICT (site) DO UPDATE SET entries = ?2, hash = ?3",
                &[
                    site.as_str().into(),
                    head.entries.into(),
                    head.hash.as_str().into(),
                ],
            )?;
        }
        Ok(transaction.commit()?)
    }
}
