//! Programs in reading order; see the `examples` directory beside this file.
