//! Studies, as the store keeps them: their texts, what hospitals have approved, and how they opened.

use super::database::Row;
use super::{Reach, Store, StoreError};
use protocol::name::{OperatorName, RunId, SiteName};
use protocol::opening::Opening;
use protocol::study::{SignedApproval, Study, StudyName};
use protocol::time::Timestamp;
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

impl Store {
    /// The runs of a study that this operator, or anybody, submitted.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn runs_of(&self, study: &Study, whose: &Reach) -> Result<BTreeSet<RunId>, StoreError> {
        let sql = "SELECT id FROM runs
             WHERE (CAST(?1 AS TEXT) IS NULL OR operator = ?1)
             AND substr(job, length(job) - length(CAST(?2 AS TEXT)) + 1) = ?2";
        // A job travels with the study's text behind its own.
        let end = study.join("");
        let values = [whose.only().into(), end.as_str().into()];
        let ids = self.database.rows(sql, &values)?;
        let ids = ids.into_iter().map(|mut row| row.take::<String>(0));
        let ids = ids.collect::<Result<Vec<_>, _>>()?;
        Ok(ids.iter().filter_map(|id| RunId::new(id).ok()).collect())
    }

    /// Keeps a study that was proposed, in the place of an earlier proposal of the same text.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn propose(&self, study: &Study, run: &RunId, at: Timestamp) -> Result<(), StoreError> {
        let values = [
            study.name.as_str().into(),
            study.text.as_str().into(),
            run.as_str().into(),
            at.0.into(),
        ];
        let sql =
            "INSERT INTO studies (name, text, run, proposed, closed) VALUES (?1, ?2, ?3, ?4, 0)
             ON CONFLICT (name) DO UPDATE SET run = ?3";
        Ok(self.database.execute(sql, &values)?)
    }

    /// How many studies this operator has proposed that are neither open nor closed, whatever became of the runs that open them.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn proposed_by(&self, operator: &OperatorName) -> Result<u64, StoreError> {
        let sql = "SELECT COUNT(*) FROM studies JOIN runs ON runs.id = studies.run
             WHERE runs.operator = ?1 AND studies.closed = 0 AND studies.opening IS NULL";
        let counted = self.database.row(sql, &[operator.as_str().into()])?;
        let counted = counted.map(|mut row| row.take::<i64>(0)).transpose()?;
        Ok(counted.map_or(0, i64::cast_unsigned))
    }

    /// Keeps what a hospital has approved.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn approve(&self, site: &SiteName, approved: &SignedApproval) -> Result<(), StoreError> {
        let bytes = wire::encode_approved(approved);
        let values = [
            approved.approval.study.as_str().into(),
            site.as_str().into(),
            bytes.as_slice().into(),
        ];
        let sql = "INSERT INTO approvals (study, site, approved) VALUES (?1, ?2, ?3)
             ON CONFLICT (study, site) DO NOTHING";
        Ok(self.database.execute(sql, &values)?)
    }

    /// Keeps how a study opened.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn open_study(&self, name: &StudyName, opening: &Opening) -> Result<(), StoreError> {
        let bytes = wire::encode_opening(opening);
        let values = [name.as_str().into(), bytes.as_slice().into()];
        let sql = "UPDATE studies SET opening = ?2 WHERE name = ?1";
        Ok(self.database.execute(sql, &values)?)
    }

    /// Ends a study.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn close_study(&self, name: &StudyName) -> Result<(), StoreError> {
        let sql = "UPDATE studies SET closed = 1 WHERE name = ?1";
        Ok(self.database.execute(sql, &[name.as_str().into()])?)
    }

    /// The study of this name.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn study(&self, name: &StudyName) -> Result<Option<KeptStudy>, StoreError> {
        let sql = "SELECT text, run, proposed, closed, opening FROM studies WHERE name = ?1";
        let found = self.database.row(sql, &[name.as_str().into()])?;
        match found.map(kept).transpose()?.flatten() {
            Some(found) => Ok(Some(self.with_approvals(found)?)),
            None => Ok(None),
        }
    }

    /// All studies. One that cannot be read is left where it is, and is in the log.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn studies(&self) -> Result<Vec<KeptStudy>, StoreError> {
        let sql = "SELECT text, run, proposed, closed, opening FROM studies";
        let mut studies = Vec::new();
        for row in self.database.rows(sql, &[])? {
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
        let values = [study.study.name.as_str().into()];
        for mut row in self.database.rows(sql, &values)? {
            let site = SiteName::new(&row.take::<String>(0)?)?;
            let approved = wire::decode_approved(&row.take::<Vec<u8>>(1)?)?;
            study.approvals.insert(site, approved);
        }
        Ok(study)
    }
}

/// A row of studies; none where this version cannot read its text.
fn kept(mut row: Row) -> Result<Option<KeptStudy>, StoreError> {
    let text: String = row.take(0)?;
    let Ok(study) = Study::parse(&text) else {
        return Ok(None);
    };
    let opening: Option<Vec<u8>> = row.take(4)?;
    let opening = opening.map(|bytes| wire::decode_opening(&bytes));
    Ok(Some(KeptStudy {
        study,
        run: RunId::new(&row.take::<String>(1)?)?,
        proposed: Timestamp(row.take(2)?),
        closed: row.take(3)?,
        opening: opening.transpose()?,
        approvals: BTreeMap::new(),
    }))
}
