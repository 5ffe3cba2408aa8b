//! Compiles the protocol's files without protoc.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../proto");
    println!("cargo:rerun-if-changed={}", root.display());
    let files = [
        "federation/v1/federation.proto",
        "federation/v1/operations.proto",
    ];
    let descriptors = protox::compile(files, [&root])?;
    tonic_prost_build::configure()
        .build_transport(false)
        .codec_path("crate::frame::FrameCodec")
        // A packed run of doubles and a bytes field are the same on the wire; this type keeps the
        // run as it came, so that entries are copied once.
        .extern_path(
            ".kindred.federation.v1.MatrixChunk",
            "crate::frame::MatrixChunk",
        )
        .compile_fds(descriptors)?;
    Ok(())
}
