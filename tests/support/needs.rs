//! What a coordinator needs, by the formula that `deploy/scale.md` states.

/// Memory of a coordinator without hospitals.
const BASE_BYTES: u64 = 20_000_000;
/// Of one connection: TLS, HTTP/2 and what waits in it, as it was measured.
const CONNECTION_BYTES: u64 = 1_400_000;
/// What two hospitals of a study send each other, by which they cover their answers: a secret of ML-KEM-768, and 32 bytes.
const SECRET_BYTES: u64 = 1_088 + 32;
/// Copies of the secrets and of an exchange's answers: what the run has, what is stored, and what is being written or sent.
const COPIES: u64 = 3;

/// The secrets that so many hospitals of a study send each other.
#[must_use]
pub fn secrets_bytes(hospitals: u64) -> u64 {
    hospitals * (hospitals - 1) / 2 * SECRET_BYTES
}

/// What a coordinator needs at most, where no hospital's answer has more than `answer` bytes.
#[must_use]
pub fn coordinator_bytes(hospitals: u64, answer: u64) -> u64 {
    let held = hospitals * answer + secrets_bytes(hospitals);
    BASE_BYTES + hospitals * CONNECTION_BYTES + COPIES * held
}
