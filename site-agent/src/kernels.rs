//! What the libraries beneath this program take from its environment.

use report::complain;
use similarity::numeric::linear_algebra::{KERNELS, better_kernels};
use std::env;
use std::process::Command;

/// What the C library's memory goes by: the bytes from which on a block has pages of its own, which go back to the system with the block;
/// and those that it keeps of smaller blocks, for a pass over pairs asks for the same ones again and again.
#[cfg(target_env = "gnu")]
const MEMORY: [(&str, &str); 2] = [
    ("MALLOC_MMAP_THRESHOLD_", "4194304"),
    ("MALLOC_TRIM_THRESHOLD_", "67108864"),
];
#[cfg(not(target_env = "gnu"))]
const MEMORY: [(&str, &str); 0] = [];

/// Starts this program again in an environment that suits the machine: with the kernels of the processor, where OpenBLAS is older than it, for
/// matrix products take a fraction of the time; and with columns that go back to the system once they are let go. What is set stays
/// as it is. Where the program cannot be started again, it goes on as it is. It begins with this, before it has threads.
pub fn suit_the_machine() {
    let kernels = better_kernels().map(|kernels| (KERNELS, kernels));
    let wanted = kernels.into_iter().chain(MEMORY);
    let unset = wanted.filter(|(name, _)| env::var_os(name).is_none());
    let unset: Vec<_> = unset.collect();
    if let (false, Ok(program)) = (unset.is_empty(), env::current_exe()) {
        let mut again = Command::new(program);
        again.args(env::args_os().skip(1)).envs(unset);
        become_it(&mut again);
    }
}

/// Gives the memory back to the system that patients took who are let go: columns smaller than [`MEMORY`] says lie in the C library's
/// own memory, which it would keep.
pub(crate) fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        unsafe extern "C" {
            fn malloc_trim(keep: usize) -> std::ffi::c_int;
        }
        // SAFETY: glibc documents this call for any time and from any thread. It touches nothing that is in use.
        unsafe {
            malloc_trim(0);
        }
    }
}

/// Puts another program in the place of this one. It comes back where it cannot.
#[cfg(unix)]
fn become_it(other: &mut Command) {
    let error = std::os::unix::process::CommandExt::exec(other);
    complain(format!(
        "matrix products may be slow, and memory large: {error}"
    ));
}

#[cfg(not(unix))]
fn become_it(_: &mut Command) {}
