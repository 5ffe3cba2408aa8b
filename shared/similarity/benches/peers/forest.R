# ranger on the data that `cargo bench --bench forest -- FOLDER` wrote.
# Run: Rscript forest.R FOLDER THREADS [SET]...   (Debian: r-cran-ranger)
library(ranger)
arguments <- commandArgs(trailingOnly = TRUE)
folder <- arguments[1]
threads <- as.integer(arguments[2])
sets <- if (length(arguments) > 2) arguments[-(1:2)] else c("2000x20", "10000x50")
cat("ranger", as.character(packageVersion("ranger")), "\n")
for (name in sets) {
  shape <- as.integer(strsplit(name, "x")[[1]])
  load <- function(part, rows) {
    values <- readBin(sprintf("%s/%s.%s.f64", folder, name, part), "double", rows * (shape[2] + 1))
    columns <- matrix(values, nrow = rows)
    list(x = columns[, -ncol(columns)], y = columns[, ncol(columns)])
  }
  training <- load("training", shape[1])
  test <- load("test", 2000)
  colnames(training$x) <- colnames(test$x) <- paste0("x", seq_len(shape[2]) - 1)
  for (size in c(5, 1)) {
    spent <- system.time(forest <- ranger(x = training$x, y = training$y, num.trees = 500, mtry = floor(sqrt(shape[2])),
      min.node.size = size, num.threads = threads, seed = 1))
    mse <- mean((predict(forest, test$x, num.threads = threads)$predictions - test$y)^2)
    cat(sprintf("train %s node %d: %.3f s, processor %.3f s, test MSE %.4f\n", name, size, spent[["elapsed"]],
      spent[["user.self"]] + spent[["sys.self"]], mse))
  }
}
