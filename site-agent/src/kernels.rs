//! The kernels by which OpenBLAS multiplies matrices.

use report::complain;
use similarity::numeric::linear_algebra::{KERNELS, better_kernels};
use std::env;
use std::process::Command;

/// Starts this program again with the kernels that suit the processor, where OpenBLAS is older than that: matrix products take a fraction
/// of the time. Where that cannot be, the program goes on as it is. It begins with this, before it has threads.
pub fn suit_the_processor() {
    if env::var_os(KERNELS).is_some() {
        return;
    }
    if let (Some(kernels), Ok(program)) = (better_kernels(), env::current_exe()) {
        let mut again = Command::new(program);
        again.args(env::args_os().skip(1)).env(KERNELS, kernels);
        become_it(&mut again);
    }
}

/// Puts another program in the place of this one. It comes back where it cannot.
#[cfg(unix)]
fn become_it(other: &mut Command) {
    let error = std::os::unix::process::CommandExt::exec(other);
    complain(format!("matrix products are slow: {error}"));
}

#[cfg(not(unix))]
fn become_it(_: &mut Command) {}
