# Areas of two scores of the same patients, by DeLong's test of pROC: Rscript areas.R > areas.json
suppressMessages(library(pROC))
set.seed(5)
n <- 30
own <- rep(c(0, 1), each = n)
one <- round(rnorm(2 * n) + own, 1)
other <- round(0.5 * one + rnorm(2 * n) + own, 1)
curve <- function(x) roc(own, x, direction = "<", quiet = TRUE)
tested <- roc.test(curve(other), curve(one), method = "delong", paired = TRUE)
difference <- unname(tested$estimate[1] - tested$estimate[2])
list_of <- function(x) paste0("[", paste(x, collapse = ", "), "]")
# DeLong's components have n - 1 in their variances, the infinitesimal jackknife n: here both classes have the same n.
cat(sprintf('{\n "made_by": "%s, pROC %s",\n "own": %s,\n "one": %s,\n "other": %s,\n "difference": %.15g,\n "error": %.15g\n}\n',
            R.version.string, packageVersion("pROC"), list_of(own), list_of(one), list_of(other),
            difference, abs(difference / unname(tested$statistic)) * sqrt((n - 1) / n)))
