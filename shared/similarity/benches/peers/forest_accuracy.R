# Predictions of ranger on the data that `cargo bench --bench forest_accuracy -- FOLDER` wrote.
# Run: Rscript forest_accuracy.R FOLDER   (Debian: r-cran-ranger). 200 trees, floor(sqrt p) features a split, and ranger's own rule of
# nodes: one of 1 (classes), 5 (numbers) or 3 (survival) in-bag patients, counted with multiplicity, is not split; survival
# also has no terminal node of fewer.
library(ranger)
library(survival)
folder <- commandArgs(trailingOnly = TRUE)[1]
cat("ranger", as.character(packageVersion("ranger")), "\n")
sizes <- c(classification = 1, regression = 5, survival = 3, censored = 3)
for (kind in names(sizes)) {
  repeats <- length(Sys.glob(sprintf("%s/%s.*.training.csv", folder, kind)))
  for (number in seq_len(repeats) - 1) {
    load <- function(part) read.csv(sprintf("%s/%s.%d.%s.csv", folder, kind, number, part))
    training <- load("training")
    if (kind == "classification") training$y <- factor(training$y)
    is_survival <- kind %in% c("survival", "censored")
    formula <- if (is_survival) Surv(time, event) ~ . else y ~ .
    forest <- ranger(formula, training, num.trees = 200, min.node.size = sizes[[kind]], num.threads = 2,
      seed = number + 1)
    found <- predict(forest, load("test"), num.threads = 2)
    values <- if (is_survival) rowSums(found$chf) else as.numeric(as.character(found$predictions))
    writeLines(format(values, digits = 17, trim = TRUE, scientific = FALSE), sprintf("%s/ranger.%s.%d.csv", folder, kind, number))
  }
  cat(kind, repeats, "data sets\n")
}
