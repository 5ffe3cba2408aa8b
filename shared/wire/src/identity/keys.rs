//! The keys of a site for one run: what it agrees with every other site by, and what its answers are signed with.
//!
//! They follow from a secret of the site, the run, and what the site drew at random for the run on one cohort and keeps. So a
//! site that starts again has them again, and other patients have other keys. The key of its certificate signs them; the coordinator passes them on and can put no other in their place.

use crate::encoding::sealed::digest_of;
use crate::identity::Identity;
use crate::identity::pairs::derived;
use crate::identity::secrets::{Encapsulated, RunSecrets, SECRET_BYTES};
use crate::identity::warrant::{SignatureError, Signed, Signer, WarrantError, Warrants};
use aws_lc_rs::agreement::{self, PrivateKey, UnparsedPublicKey, X25519};
use aws_lc_rs::error::Unspecified;
use aws_lc_rs::kem::{DecapsulationKey, ML_KEM_768};
use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey as Verifying};
use protocol::failure::{Code, Failure};
use protocol::message::{Answer, Begin, Introduction};
use protocol::name::SiteName;
use protocol::run::{Event, Proof, Run};
use sha2::{Digest, Sha256};
use std::fmt;

/// The key of the agreement is taken from what a site keeps with this.
const AGREEMENT: &[u8] = b"kindred: a site's key of agreement for a run, version 1";
/// The key that signs answers is taken from it with this.
const SIGNING: &[u8] = b"kindred: a site's key of signatures for a run, version 1";
/// What a site tells all later ones is taken from it with this.
const COMMON: &[u8] = b"kindred: a secret for all later sites, version 2";
/// What the certificate's key signs of them begins with this.
const INTRODUCTION: &[u8] = b"kindred: keys of a site for a run, version 2\0";
/// What is signed of an answer begins with this.
const ANSWER: &[u8] = b"kindred: an answer of a run, version 1\0";

/// The secret keys of a site for one run on one cohort.
pub struct SiteKeys {
    pub(super) agreement: PrivateKey,
    signing: Ed25519KeyPair,
    pub(super) decapsulation: DecapsulationKey,
    /// What it tells every later site.
    pub(super) common: [u8; SECRET_BYTES],
    pub(super) secrets: RunSecrets,
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
        /// The party that the certificate names.
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
    #[error(
        "the keys of {site} agree on nothing: wanted a point of X25519 of full order and a key of ML-KEM-768"
    )]
    Agreement {
        /// Whose they are.
        site: String,
    },
}

impl SiteKeys {
    /// The keys that follow from the site's `own` secret, the run, and what was drawn for it.
    ///
    /// # Errors
    /// [`KeyError::Unusable`].
    pub fn new(run: &str, own: &[u8; SECRET_BYTES], secrets: RunSecrets) -> Result<Self, KeyError> {
        let secret = [&own[..], &secrets.random].concat();
        let info = [run.as_bytes(), b"\0", secrets.cohort()].concat();
        let part = |purpose| derived(purpose, &secret, &info).map_err(|_| KeyError::Unusable);
        let unusable = |_| KeyError::Unusable;
        Ok(Self {
            agreement: PrivateKey::from_private_key(&X25519, &part(AGREEMENT)?)
                .map_err(unusable)?,
            signing: Ed25519KeyPair::from_seed_unchecked(&part(SIGNING)?).map_err(unusable)?,
            decapsulation: DecapsulationKey::new(&ML_KEM_768, &secrets.decapsulation)
                .map_err(unusable)?,
            common: part(COMMON)?,
            secrets,
        })
    }

    /// What the site has to keep of them, before anything of them leaves.
    #[must_use]
    pub fn secrets(&self) -> &RunSecrets {
        &self.secrets
    }

    /// What the site tells of them and of the number of its patients, with the word of its certificate's key.
    ///
    /// # Errors
    /// [`KeyError`].
    pub fn introduce(
        &self,
        signer: &Signer,
        run: &str,
        patients_at_most: u64,
    ) -> Result<Introduction, KeyError> {
        let agreement = self.agreement.compute_public_key();
        let agreement = agreement.map_err(|_| KeyError::Unusable)?.as_ref().to_vec();
        let signing = self.signing.public_key().as_ref().to_vec();
        let encapsulation = self.secrets.encapsulation.clone();
        let keys: [&[u8]; 3] = [&agreement, &signing, &encapsulation];
        let signed = signer.sign_bytes(&vouched(run, keys, patients_at_most))?;
        Ok(Introduction {
            agreement,
            signing,
            encapsulation,
            patients_at_most,
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
            && self.secrets.encapsulation == introduction.encapsulation
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
    /// Whether an introduction is of the site that it should be of, by a certificate of the own authority, now, and whether
    /// anything can be agreed with its keys.
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
            patients_at_most,
            ..
        } = introduction;
        let keys: [&[u8]; 3] = [agreement, signing, encapsulation];
        let message = vouched(run, keys, *patients_at_most);
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
            Identity::Site(found) if found == *site => agrees(introduction)
                .then_some(())
                .ok_or_else(|| KeyError::Agreement {
                    site: site.to_string(),
                }),
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

/// Whether a stranger can agree on something with these keys, by X25519 and by ML-KEM-768.
fn agrees(introduction: &Introduction) -> bool {
    let public = UnparsedPublicKey::new(&X25519, &introduction.agreement);
    let stranger = PrivateKey::generate(&X25519);
    let agreed = stranger.and_then(|own| agreement::agree(&own, public, Unspecified, |_| Ok(())));
    agreed.is_ok() && Encapsulated::fresh(&introduction.encapsulation).is_ok()
}

/// The bytes that the certificate's key signs.
fn vouched(run: &str, keys: [&[u8]; 3], patients_at_most: u64) -> Vec<u8> {
    let mut bytes = INTRODUCTION.to_vec();
    let patients = patients_at_most.to_be_bytes();
    let parts = [run.as_bytes()].into_iter().chain(keys);
    for part in parts.chain([&patients[..]]) {
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
            let secrets = RunSecrets::draw([3; 32]).unwrap();
            let keys = SiteKeys::new(RUN, &[place as u8 + 1; 32], secrets).unwrap();
            let introduction = keys.introduce(&signer, RUN, 120).unwrap();
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
        let counted = Introduction {
            patients_at_most: 1_000,
            ..introduction.clone()
        };
        let counted = refused(RUN, &sites[0], &counted);
        assert!(matches!(counted, KeyError::Certificate { .. }), "{counted}");
        let swapped = refused(RUN, &sites[0], &swapped);
        assert!(matches!(swapped, KeyError::Certificate { .. }), "{swapped}");
        let (_other_folder, foreign, ..) = federation(&["north"]);
        assert!(foreign.introduced(RUN, &sites[0], introduction).is_err());
    }

    /// A member sends keys that its certificate signs and that nobody can use: it is at fault, and is named, before another site
    /// receives them.
    #[test]
    fn keys_that_agree_on_nothing_are_the_fault_of_their_site() {
        let (folder, warrants, _, parties) = federation(&["north", "south"]);
        let files = issue(folder.path(), &Role::Site, "east", Validity::days(1)).unwrap();
        let signer = Signer::load(&files).unwrap();
        let east = SiteName::new("east").unwrap();
        let good = &parties[1].introduction;
        let low_order = |first| {
            let mut point = vec![0; 32];
            point[0] = first;
            point
        };
        let forged = [
            (low_order(0), good.encapsulation.clone()),
            (low_order(1), good.encapsulation.clone()),
            (good.agreement.clone(), vec![255; 1_184]),
            (good.agreement.clone(), vec![1; 1_183]),
            (vec![9; 31], good.encapsulation.clone()),
        ];
        for (agreement, encapsulation) in forged {
            let keys = [&agreement[..], &good.signing, &encapsulation];
            let signed = signer.sign_bytes(&vouched(RUN, keys, 0)).unwrap();
            let introduction = Introduction {
                signing: good.signing.clone(),
                chain: signed.chain,
                scheme: signed.scheme,
                signature: signed.signature,
                agreement,
                encapsulation,
                patients_at_most: 0,
            };
            let error = warrants.introduced(RUN, &east, &introduction).unwrap_err();
            let KeyError::Agreement { site } = error else {
                panic!("{error}");
            };
            assert_eq!(site, "east");
        }
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
