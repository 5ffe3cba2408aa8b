//! The experiments of the UnPSL paper (Huai et al. 2018, section 5), one command a table or figure, and the study of
//! Feng and Baumgartner (2020).
//!
//! No part of the two programs: it reads public data sets from one folder, learns in one process, and
//! writes tables and figures.

pub mod baselines;
mod drawing;
mod error;
mod figures;
mod methods;
mod output;
mod paper;
mod preparation;
mod progress;
mod scores;
mod sources;
mod study;
mod table_1;
mod table_2;
mod task;

pub use error::ExperimentError;
pub use figures::{Figure, figure_2, figure_3};
pub use methods::Method;
pub use output::{Sheet, write_files};
pub use study::{Function, Kind, StudySettings, study};
pub use table_1::{DataSet, Table1Settings, table_1};
pub use table_2::{Table2Settings, table_2};
