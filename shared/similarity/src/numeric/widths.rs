//! Loops that are compiled for each width of register that a processor may have. No operation is fused, so all give equal bits.

/// Compiles a body once for each width of register, and picks one where it runs.
macro_rules! widths {
    ($(#[$documentation:meta])* $visibility:vis $name:ident = $body:ident($($argument:ident: $kind:ty),*)) => {
        $(#[$documentation])*
        #[cfg(target_arch = "x86_64")]
        $visibility fn $name($($argument: $kind),*) {
            #[target_feature(enable = "avx512f,avx512dq,avx512vl")]
            fn widest($($argument: $kind),*) { $body($($argument),*) }
            #[target_feature(enable = "avx2")]
            fn wide($($argument: $kind),*) { $body($($argument),*) }
            if is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl")
            {
                // SAFETY: the processor has just said that it has these instructions.
                unsafe { widest($($argument),*) }
            } else if is_x86_feature_detected!("avx2") {
                // SAFETY: as above.
                unsafe { wide($($argument),*) }
            } else {
                $body($($argument),*)
            }
        }

        $(#[$documentation])*
        #[cfg(not(target_arch = "x86_64"))]
        $visibility fn $name($($argument: $kind),*) { $body($($argument),*) }
    };
}

pub(crate) use widths;
