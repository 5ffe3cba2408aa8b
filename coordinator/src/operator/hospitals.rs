//! `sites list`: the hospitals of an operator's studies.

use protocol::study::StudyState;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

/// Hospitals by name.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub struct Hospitals(Vec<Hospital>);

#[derive(Debug, Default, Serialize)]
struct Hospital {
    site: String,
    connected: bool,
    /// Studies that it has approved.
    approved: Vec<String>,
    /// Studies that wait for its approval.
    awaited: Vec<String>,
}

impl Hospitals {
    /// Those of these studies.
    #[must_use]
    pub fn of(studies: &[StudyState]) -> Self {
        let mut found: BTreeMap<&str, Hospital> = BTreeMap::new();
        for study in studies {
            for one in &study.hospitals {
                let known = found.entry(one.name.as_str()).or_default();
                one.name.as_str().clone_into(&mut known.site);
                known.connected = one.connected;
                let list = match one.approval {
                    Some(_) => &mut known.approved,
                    None => &mut known.awaited,
                };
                list.push(study.name.to_string());
            }
        }
        Self(found.into_values().collect())
    }
}

impl fmt::Display for Hospitals {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lengths = self.0.iter().map(|one| one.site.len());
        let width = lengths.max().unwrap_or_default().max("SITE".len());
        write!(formatter, "{:<width$}  CONNECTED  STUDIES", "SITE")?;
        for one in &self.0 {
            let connected = if one.connected { "yes" } else { "no" };
            let awaited = one
                .awaited
                .iter()
                .map(|name| format!("{name} (not approved)"));
            let studies: Vec<String> = one.approved.iter().cloned().chain(awaited).collect();
            let studies = studies.join(", ");
            write!(
                formatter,
                "\n{:<width$}  {connected:<9}  {studies}",
                one.site
            )?;
        }
        Ok(())
    }
}
