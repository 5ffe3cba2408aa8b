//! Compiles the protocol's files without protoc.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../proto");
    println!("cargo:rerun-if-changed={}", root.display());
    let files = [
        "federation/v1/enrolment.proto",
        "federation/v1/federation.proto",
        "federation/v1/operations.proto",
    ];
    let descriptors = protox::compile(files, [&root])?;
    let mut config = tonic_prost_build::configure()
        .build_transport(false)
        .codec_path("crate::encoding::codec::FrameCodec");
    // A message within a message, and a packed run of doubles, are the same on the wire as a bytes field. These types
    // leave them as they came.
    for name in ["MatrixChunk", "ToCoordinatorFrame"] {
        config = config.extern_path(
            format!(".kindred.federation.v1.{name}"),
            format!("crate::encoding::raw::{name}"),
        );
    }
    config.compile_fds(descriptors)?;
    Ok(())
}
