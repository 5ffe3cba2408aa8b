//! In which form a site tells what adds up over sites.

/// How much of one site a message tells by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Contributions {
    /// Nothing: what adds up leaves covered by masks, and can be read only as the sum over the sites that take part.
    #[default]
    Sums,
    /// The site's own numbers, under the rules for small counts.
    Own,
}

impl Contributions {
    /// Both, as a job and site.toml spell them.
    pub const ALL: [Self; 2] = [Self::Sums, Self::Own];

    /// The word for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Sums => "sums",
            Self::Own => "own",
        }
    }
}
