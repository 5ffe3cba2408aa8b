//! How an error ends a program, alike in both.

/// Makes of a program's enumeration `Exit` what its errors need to say by which code they end it. An error that does not say so cannot
/// end it. The list has those that always end it by the same code.
#[macro_export]
macro_rules! exits {
    ($($error:ty => $exit:ident,)*) => {
        /// An error that ends the program: each says by which code.
        pub trait Exits: std::error::Error {
            /// The code.
            fn exit(&self) -> Exit;
        }

        /// Why the program ended otherwise than it should.
        #[derive(Debug)]
        pub struct Ended {
            /// The code.
            pub exit: Exit,
            /// What happened.
            pub error: Box<dyn std::error::Error>,
        }

        impl<E: Exits + 'static> From<E> for Ended {
            fn from(error: E) -> Self {
                Self {
                    exit: error.exit(),
                    error: Box::new(error),
                }
            }
        }

        impl Exits for $crate::SayError {
            fn exit(&self) -> Exit {
                match self {
                    Self::Closed => Exit::Unread,
                    Self::Failed(_) => Exit::Failed,
                }
            }
        }

        impl From<Exit> for std::process::ExitCode {
            fn from(exit: Exit) -> Self {
                Self::from(exit as u8)
            }
        }

        $(impl Exits for $error {
            fn exit(&self) -> Exit {
                Exit::$exit
            }
        })*
    };
}
