//! Studies, as the store keeps them: their texts, what hospitals have approved, and how they opened.

use super::{Reach, Store, StoreError};
use protocol::name::{RunId, SiteName};
use protocol::opening::Opening;
use protocol::study::{SignedApproval, Study, StudyName};
use protocol::time::Timestamp;
use rusqlite::{OptionalExtension, Row, params};
use std::collections::{BTreeMap, BTreeSet};

/// A study, as the store keeps it.
#[derive(Debug, Clone)]
pub struct KeptStudy {
    /// The study.
    pub study: Study,
    /// The run that opens it.
    pub run: RunId,
    /// When it was proposed.
    pub proposed: Timestamp,
    /// Whether its operators have closed it.
    pub closed: bool,
    /// How it opened; none before.
    pub opening: Option<Opening>,
    /// What hospitals have approved.
    pub approvals: BTreeMap<SiteName, SignedApproval>,
}

const COLUMNS: &str = "SELECT text, run, proposed, closed, opening FROM studies";

impl Store {
    /// The runs of a study that this operator, or anybody, submitted.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn runs_of(&self, study: &Study, whose: &Reach) -> Result<BTreeSet<RunId>, StoreError> {
        let sql = "SELECT id FROM runs
             WHERE (?1 IS NULL OR operator = ?1) AND substr(job, -length(?2)) = ?2";
        // A job travels with the study's text behind its own.
        let end = study.join("");
        let mut statement = self.connection.prepare_cached(sql)?;
        let ids = statement.query_map(params![whose.only(), end], |row| row.get::<_, String>(0))?;
        let ids = ids.collect::<Result<Vec<_>, _>>()?;
        Ok(ids.iter().filter_map(|id| RunId::new(id).ok()).collect())
    }

    /// Keeps a study that was proposed, in the place of an earlier proposal of the same text.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn propose(&self, study: &Study, run: &RunId, at: Timestamp) -> Result<(), StoreError> {
        self.connection.execute(
            "INSERT INTO studies (name, text, run, proposed, closed) VALUES (?1, ?2, ?3, ?4, 0)
             ON CONFLICT (name) DO UPDATE SET run = ?3",
            params![
                study.name.as_str(),
                study.text,
                run.as_str(),
                at.0.cast_signed()
            ],
        )?;
        Ok(())
    }

    /// Keeps what a hospital has approved.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn approve(&self, site: &SiteName, approved: &SignedApproval) -> Result<(), StoreError> {
        self.connection.execute(
            "INSERT OR IGNORE INTO approvals (study, site, approved) VALUES (?1, ?2, ?3)",
            params![
                approved.approval.study,
                site.as_str(),
                wire::encode_approved(approved)
            ],
        )?;
        Ok(())
    }

    /// Keeps how a study opened.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn open_study(&self, name: &StudyName, opening: &Opening) -> Result<(), StoreError> {
        self.connection.execute(
            "UPDATE studies SET opening = ?2 WHERE name = ?1",
            params![name.as_str(), wire::encode_opening(opening)],
        )?;
        Ok(())
    }

    /// Ends a study.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn close_study(&self, name: &StudyName) -> Result<(), StoreError> {
        let sql = "UPDATE studies SET closed = 1 WHERE name = ?1";
        self.connection.execute(sql, [name.as_str()])?;
        Ok(())
    }

    /// The study of this name.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn study(&self, name: &StudyName) -> Result<Option<KeptStudy>, StoreError> {
        let sql = format!("{COLUMNS} WHERE name = ?1");
        let mut statement = self.connection.prepare_cached(&sql)?;
        let found = statement.query_row([name.as_str()], |row| Ok(kept(row)));
        match found.optional()?.transpose()?.flatten() {
            Some(found) => Ok(Some(self.with_approvals(found)?)),
            None => Ok(None),
        }
    }

    /// All studies. One that cannot be read is left where it is, and is in the log.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn studies(&self) -> Result<Vec<KeptStudy>, StoreError> {
        let mut statement = self.connection.prepare(COLUMNS)?;
        let mut rows = statement.query([])?;
        let mut studies = Vec::new();
        while let Some(row) = rows.next()? {
            match kept(row) {
                Ok(Some(study)) => studies.push(self.with_approvals(study)?),
                Ok(None) => tracing::error!("the text of a stored study cannot be read"),
                Err(error) => tracing::error!(%error, "a stored study cannot be read"),
            }
        }
        Ok(studies)
    }

    fn with_approvals(&self, mut study: KeptStudy) -> Result<KeptStudy, StoreError> {
        let sql = "SELECT site, approved FROM approvals WHERE study = ?1";
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut rows = statement.query([study.study.name.as_str()])?;
        while let Some(row) = rows.next()? {
            let site = SiteName::new(&row.get::<_, String>(0)?)?;
            let approved = wire::decode_approved(&row.get::<_, Vec<u8>>(1)?)?;
            study.approvals.insert(site, approved);
        }
        Ok(study)
    }
}

/// A row of studies; none where this version cannot read its text.
fn kept(row: &Row<'_>) -> Result<Option<KeptStudy>, StoreError> {
    let text: String = row.get(0)?;
    let Ok(study) = Study::parse(&text) else {
        return Ok(None);
    };
    let opening: Option<Vec<u8>> = row.get(4)?;
    let opening = opening.map(|bytes| wire::decode_opening(&bytes));
    Ok(Some(KeptStudy {
        study,
        run: RunId::new(&row.get::<_, String>(1)?)?,
        proposed: Timestamp(row.get::<_, i64>(2)?.cast_unsigned()),
        closed: row.get(3)?,
        opening: opening.transpose()?,
        approvals: BTreeMap::new(),
    }))
}
