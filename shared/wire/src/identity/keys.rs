//! The keys of a site for one run: what it agrees with every other site by, and what its answers are signed with.
//!
//! They follow from a secret of the site and from the run, so that a site that starts again has them again and keeps no file.
//! The key of its certificate signs them; the coordinator passes them on and can put no other in their place.

use crate::encoding::sealed::digest_of;
use crate::identity::Identity;
use crate::identity::pairs::SECRET_BYTES;
use crate::identity::warrant::{SignatureError, Signed, Signer, WarrantError, Warrants};
use aws_lc_rs::agreement::{PrivateKey, X25519};
use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey as Verifying};
use libcrux_ml_kem::mlkem768::{MlKem768KeyPair, generate_key_pair};
use protocol::failure::{Code, Failure};
use protocol::message::{Answer, Begin, Introduction};
use protocol::name::SiteName;
use protocol::run::{Event, Proof, Run};
use sha2::{Digest, Sha256};
use std::fmt;

/// Bytes that the keys of a run follow from.
pub const SEED_BYTES: usize = 160;
/// What the certificate's key signs of them begins with this.
const INTRODUCTION: &[u8] = b"kindred: keys of a site for a run, version 2\0";
/// What is signed of an answer begins with this.
const ANSWER: &[u8] = b"kindred: an answer of a run, version 1\0";

/// The secret keys of a site for one run.
pub struct SiteKeys {
    pub(super) agreement: PrivateKey,
    signing: Ed25519KeyPair,
    pub(super) encapsulation: MlKem768KeyPair,
    /// What the secrets that it encapsulates for others follow from.
    pub(super) encapsulated: [u8; SECRET_BYTES],
}

/// An answer, as a site's word is for it.
#[derive(Debug, Clone, Copy)]
pub struct Said<'s> {
    /// The digest of the run, 64 digits.
    pub run: &'s str,
    /// The exchange.
    pub exchange: u32,
    /// SHA-256 of the answer as it travels, 64 digits.
    pub answer: &'s str,
}

/// Keys that cannot be used, or that are not of the site that they should be of.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The site's own secret makes no keys.
    #[error("the site's secret makes no keys")]
    Unusable,
    /// The certificate's key cannot sign.
    #[error(transparent)]
    Signature(#[from] SignatureError),
    /// The certificate or its signature does not hold.
    #[error("the keys of {site} are not vouched for: {source}")]
    Certificate {
        /// Whose they should be.
        site: String,
        /// Why.
        source: WarrantError,
    },
    /// They are somebody else's.
    #[error("the keys of {site} are those of {found}")]
    Other {
        /// Whose they should be.
        site: String,
        /// Whom the certificate names.
        found: String,
    },
    /// The answer has no word of them.
    #[error("the answer to exchange {exchange} is not signed by the keys of {site}")]
    Unsigned {
        /// Whose word it should have.
        site: String,
        /// The exchange.
        exchange: u32,
    },
    /// Nothing can be agreed with them.
    #[error("the keys of {site} agree on nothing")]
    Agreement {
        /// Whose they are.
        site: String,
    },
}

impl SiteKeys {
    /// The keys that follow from a secret of this run.
    ///
    /// # Errors
    /// [`KeyError::Unusable`].
    pub fn from_seed(seed: &[u8; SEED_BYTES]) -> Result<Self, KeyError> {
        let (agreement, rest) = seed.split_at(SECRET_BYTES);
        let (signing, rest) = rest.split_at(SECRET_BYTES);
        let (encapsulation, encapsulated) = rest.split_at(2 * SECRET_BYTES);
        let unusable = |_| KeyError::Unusable;
        let short = |_| KeyError::Unusable;
        Ok(Self {
            encapsulation: generate_key_pair(encapsulation.try_into().map_err(short)?),
            encapsulated: encapsulated.try_into().map_err(short)?,
            agreement: PrivateKey::from_private_key(&X25519, agreement).map_err(unusable)?,
            signing: Ed25519KeyPair::from_seed_unchecked(signing).map_err(unusable)?,
        })
    }

    /// What the site tells of them, with the word of its certificate's key.
    ///
    /// # Errors
    /// [`KeyError`].
    pub fn introduce(&self, signer: &Signer, run: &str) -> Result<Introduction, KeyError> {
        let agreement = self.agreement.compute_public_key();
        let agreement = agreement.map_err(|_| KeyError::Unusable)?.as_ref().to_vec();
        let signing = self.signing.public_key().as_ref().to_vec();
        let encapsulation = self.encapsulation.pk().to_vec();
        let signed = signer.sign_bytes(&vouched(run, [&agreement, &signing, &encapsulation]))?;
        Ok(Introduction {
            agreement,
            signing,
            encapsulation,
            chain: signed.chain,
            scheme: signed.scheme,
            signature: signed.signature,
        })
    }

    /// Whether an introduction is of these keys.
    #[must_use]
    pub fn are_of(&self, introduction: &Introduction) -> bool {
        let agreement = self.agreement.compute_public_key();
        let same = agreement.is_ok_and(|own| own.as_ref() == introduction.agreement);
        same && self.signing.public_key().as_ref() == introduction.signing
            && self.encapsulation.pk()[..] == introduction.encapsulation
    }

    /// The site's word for an answer.
    #[must_use]
    pub fn sign(&self, said: &Said<'_>) -> Vec<u8> {
        self.signing.sign(&said.bytes()).as_ref().to_vec()
    }
}

impl Said<'_> {
    /// Whether this is what the site of an introduction has signed.
    #[must_use]
    pub fn is_signed(&self, introduction: &Introduction, signature: &[u8]) -> bool {
        let key = Verifying::new(&ED25519, &introduction.signing);
        key.verify(&self.bytes(), signature).is_ok()
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = ANSWER.to_vec();
        bytes.extend(self.run.as_bytes());
        bytes.extend(self.exchange.to_be_bytes());
        bytes.extend(self.answer.as_bytes());
        bytes
    }
}

impl Warrants {
    /// Whether an introduction is of the site that it should be of: by a certificate of the own authority, now.
    ///
    /// # Errors
    /// [`KeyError`] says why not.
    pub fn introduced(
        &self,
        run: &str,
        site: &SiteName,
        introduction: &Introduction,
    ) -> Result<(), KeyError> {
        let Introduction {
            agreement,
            signing,
            encapsulation,
            ..
        } = introduction;
        let message = vouched(run, [agreement, signing, encapsulation]);
        let signed = Signed {
            chain: introduction.chain.clone(),
            scheme: introduction.scheme,
            signature: introduction.signature.clone(),
        };
        let holder = self.holder(&signed, &message);
        let holder = holder.map_err(|source| KeyError::Certificate {
            site: site.to_string(),
            source,
        })?;
        match holder {
            Identity::Site(found) if found == *site => Ok(()),
            other => Err(KeyError::Other {
                site: site.to_string(),
                found: other.to_string(),
            }),
        }
    }
}

impl Warrants {
    /// What happened in a run, once it is judged whether an answer is the site's own: of one that is not, only that it is
    /// not. `digest` is the run's.
    #[must_use]
    pub fn proven(&self, digest: &str, run: &Run, event: Event) -> Event {
        let Event::Answered {
            site,
            exchange,
            answer,
            signature,
        } = &event
        else {
            return event;
        };
        let judged = match (run.proof(site, *exchange), answer) {
            (Some(Proof::Certificate), Answer::Introduced(introduction)) => {
                self.introduced(digest, site, introduction)
            }
            (Some(Proof::Keys(introduction)), answer) => {
                let said = Said {
                    run: digest,
                    exchange: *exchange,
                    answer: &digest_of(answer),
                };
                let is_signed = said.is_signed(introduction, signature);
                is_signed.then_some(()).ok_or_else(|| KeyError::Unsigned {
                    site: site.to_string(),
                    exchange: *exchange,
                })
            }
            (Some(Proof::Certificate) | None, _) => Ok(()),
        };
        match judged {
            Ok(()) => event,
            Err(error) => Event::Unproven {
                site: site.clone(),
                exchange: *exchange,
                fault: Failure::new(Code::Protocol, error.to_string()),
            },
        }
    }
}

/// The digest of a run whose job `operator` signed, 64 digits: of its job's text, its operator, the token that they chose for
/// it, and its seed. Its name is no part of it.
#[must_use]
pub fn run_digest(begin: &Begin, operator: &str) -> String {
    let mut digest = Sha256::new();
    for text in [&begin.job, operator, &begin.warrant.token] {
        digest.update((text.len() as u64).to_be_bytes());
        digest.update(text);
    }
    digest.update(begin.seed.to_be_bytes());
    let digits = digest.finalize();
    digits.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The bytes that the certificate's key signs.
fn vouched(run: &str, keys: [&[u8]; 3]) -> Vec<u8> {
    let mut bytes = INTRODUCTION.to_vec();
    for part in [run.as_bytes()].into_iter().chain(keys) {
        bytes.extend((part.len() as u64).to_be_bytes());
        bytes.extend(part);
    }
    bytes
}

impl fmt::Debug for SiteKeys {
    /// Nothing of them.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("SiteKeys").finish_non_exhaustive()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::identity::certificates::{Role, Validity, init, issue};

    pub(in crate::identity) const RUN: &str =
        "6e6f7274686e6f7274686e6f7274686e6f7274686e6f7274686e6f7274686e00";

    pub(in crate::identity) struct Party {
        pub(in crate::identity) keys: SiteKeys,
        pub(in crate::identity) introduction: Introduction,
    }

    pub(in crate::identity) fn federation(
        names: &[&str],
    ) -> (tempfile::TempDir, Warrants, Vec<SiteName>, Vec<Party>) {
        let folder = tempfile::tempdir().unwrap();
        init(folder.path(), Validity::days(1)).unwrap();
        let mut warrants = None;
        let mut parties = Vec::new();
        for (place, name) in names.iter().enumerate() {
            let files = issue(folder.path(), &Role::Site, name, Validity::days(1)).unwrap();
            let signer = Signer::load(&files).unwrap();
            let keys = SiteKeys::from_seed(&[place as u8 + 1; SEED_BYTES]).unwrap();
            let introduction = keys.introduce(&signer, RUN).unwrap();
            parties.push(Party { keys, introduction });
            warrants = Some(Warrants::load(&files.authority).unwrap());
        }
        let sites = names.iter().map(|name| SiteName::new(name).unwrap());
        (folder, warrants.unwrap(), sites.collect(), parties)
    }

    #[test]
    fn keys_are_of_one_site_one_run_and_one_authority() {
        let (_folder, warrants, sites, parties) = federation(&["north", "south"]);
        let introduction = &parties[0].introduction;
        warrants.introduced(RUN, &sites[0], introduction).unwrap();
        let refused = |run, site: &SiteName, introduction: &Introduction| {
            warrants.introduced(run, site, introduction).unwrap_err()
        };
        let other = refused(RUN, &sites[1], introduction);
        assert!(matches!(other, KeyError::Other { .. }), "{other}");
        let run = refused("another", &sites[0], introduction);
        assert!(matches!(run, KeyError::Certificate { .. }), "{run}");
        let swapped = Introduction {
            encapsulation: parties[1].introduction.encapsulation.clone(),
            ..introduction.clone()
        };
        let swapped = refused(RUN, &sites[0], &swapped);
        assert!(matches!(swapped, KeyError::Certificate { .. }), "{swapped}");
        let (_other_folder, foreign, ..) = federation(&["north"]);
        assert!(foreign.introduced(RUN, &sites[0], introduction).is_err());
    }

    #[test]
    fn a_word_is_for_one_answer_in_one_place() {
        let (_folder, _, _, parties) = federation(&["north", "south"]);
        let said = Said {
            run: RUN,
            exchange: 3,
            answer: "ab",
        };
        let word = parties[0].keys.sign(&said);
        let introduction = &parties[0].introduction;
        assert!(said.is_signed(introduction, &word));
        assert!(!said.is_signed(&parties[1].introduction, &word));
        let others = [
            Said {
                exchange: 4,
                ..said
            },
            Said {
                answer: "ac",
                ..said
            },
            Said {
                run: "other",
                ..said
            },
        ];
        assert!(
            others
                .iter()
                .all(|other| !other.is_signed(introduction, &word))
        );
        assert!(!said.is_signed(introduction, &word[1..]));
    }
}
