//! The list of all methods, the only one: each crate makes its registry of it.

/// Calls the macro `$make` with all methods: the name of the variant, and that of the module and of the job's table.
#[macro_export]
macro_rules! methods {
    ($make:ident) => {
        $make! {
            Unpsl unpsl,
            Forest forest,
            Regression regression,
            Neighbours neighbours,
            Cluster cluster,
            Compare compare,
            Card card,
        }
    };
}
