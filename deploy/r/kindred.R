# Reads what a run of Kindred left. It needs base R and jsonlite; survival for curves. Nothing is sent anywhere.
#
#     source("deploy/r/kindred.R")
#     run <- kindred_load("results")
#     summary(run)
#     plot(kindred_survival(kindred_load("results/patients"), group))

# All files of a folder that are there: JSON as lists, CSV as data frames.
kindred_load <- function(folder) {
  if (!any(file.exists(file.path(folder, c("result.json", "comparison.json"))))) {
    stop(folder, " has neither result.json nor comparison.json")
  }
  paths <- list.files(folder, "\\.(json|csv)$", full.names = TRUE)
  run <- lapply(paths, function(path) {
    if (grepl("json$", path)) jsonlite::fromJSON(path) else kindred_table(path)
  })
  names(run) <- basename(paths)
  structure(run, class = "kindred")
}

# A table by its sidecar: identifiers and levels stay texts, an empty number is NA.
kindred_table <- function(path) {
  columns <- jsonlite::fromJSON(paste0(path, "-metadata.json"))$tableSchema$columns
  table <- read.csv(path, colClasses = "character", check.names = FALSE, encoding = "UTF-8")
  numbers <- columns$titles[columns$datatype != "string"]
  table[numbers] <- lapply(table[numbers], type.convert, as.is = TRUE)
  table
}

# The coefficients of a regression, in the columns of summary(coxph(...)).
summary.kindred <- function(object, ...) {
  said <- object[["coefficients.csv"]]
  if (is.null(said)) stop("this run has no coefficients")
  z <- said$coefficient / said$standard_error
  table <- cbind(said$coefficient, exp(said$coefficient), said$standard_error, z, said$p)
  dimnames(table) <- list(said$column, c("coef", "exp(coef)", "se(coef)", "z", "Pr(>|z|)"))
  facts <- object[["regression.json"]]
  answer <- list(coefficients = table, n = facts$patients, nevent = facts$events, loglik = facts$log_likelihood)
  structure(answer, class = "summary.kindred")
}

print.summary.kindred <- function(x, ...) {
  cat("n = ", x$n, ", number of events = ", x$nevent, "\n\n", sep = "")
  printCoefmat(x$coefficients, P.values = TRUE, has.Pvalue = TRUE)
  invisible(x)
}

# Kaplan-Meier curves of a hospital's own patients, by a group with one entry per patient.
kindred_survival <- function(site, group) {
  patients <- site[["outcome.csv"]]
  time <- patients[[grep("^time \\(", names(patients))]]
  survival::survfit(survival::Surv(time, patients$event) ~ group, conf.type = "log-log")
}
