# Ridges by restricted likelihood: mgcv's gam(method = "REML") with one ridge over all columns, each divided by its standard deviation.
# Rscript ridge.R writes ridge.csv (synthetic patients of six sets) and ridge.json.
suppressMessages({library(mgcv); library(survival)})
set.seed(29)
patients <- function(n, p, rho = 0) {
  common <- rnorm(n)
  round(sqrt(1 - rho) * matrix(rnorm(n * p), n) + sqrt(rho) * common, 3)
}
b <- c(0.8, -0.5, 0.3, 0.2, 0, 0)
make <- function(name, x, eta) {
  u <- runif(nrow(x))
  y <- switch(name, linear = round(eta + 2 * rnorm(nrow(x)), 3), separable = as.numeric(eta > 0), as.numeric(u < plogis(eta)))
  data.frame(set = name, x, y = y, time = 0)
}
survival <- function(name, x, eta, censor) {
  t <- rexp(nrow(x)) * exp(-eta); c <- runif(nrow(x), 0, censor)
  data.frame(set = name, x, y = as.numeric(t <= c), time = round(1000 * pmin(t, c), 3) + 1)
}
x <- lapply(1:4, function(i) patients(150, 6))
k <- patients(150, 6, 0.97)
few <- patients(300, 6)
s <- patients(150, 6)
all <- rbind(
  make("linear", x[[1]], x[[1]] %*% b), make("logistic", x[[2]], x[[2]] %*% b), make("few events", few, few %*% b - 3),
  make("collinear", k, k %*% b), make("separable", s, s %*% b), survival("cox", x[[3]], x[[3]] %*% b, 2),
  survival("cox few events", few, few %*% b, 0.06))
names(all)[2:7] <- paste0("x", 1:6)
write.csv(all, "ridge.csv", row.names = FALSE, quote = FALSE)
# Of the separable set the likelihood has no end.
found <- lapply(split(all, all$set)[unique(all$set) |> setdiff("separable") |> sort()], function(d) {
  raw <- as.matrix(d[, paste0("x", 1:6)]); n <- nrow(raw)
  deviations <- sqrt(colMeans(sweep(raw, 2, colMeans(raw))^2))
  X <- sweep(sweep(raw, 2, colMeans(raw)), 2, deviations, "/")
  pen <- list(X = list(diag(6)))
  ctl <- list(epsilon = 1e-10, newton = list(conv.tol = 1e-9))
  name <- d$set[1]
  fit <- if (grepl("cox", name)) gam(d$time ~ X - 1, family = cox.ph(), weights = d$y, paraPen = pen, method = "REML", control = ctl)
    else gam(d$y ~ X, family = if (name == "linear") gaussian() else binomial(), paraPen = pen, method = "REML", control = ctl)
  b <- coef(fit)[grepl("^X", names(coef(fit)))]
  list(ridge = unname(fit$sp[1]), events = sum(d$y == 1), coefficients = unname(b / deviations),
       standard_errors = unname(sqrt(diag(vcov(fit)))[grepl("^X", names(coef(fit)))] / deviations))
})
number <- function(x) paste0("[", paste(sprintf("%.12g", x), collapse = ", "), "]")
lines <- sapply(names(found), function(name) with(found[[name]], sprintf('  "%s": {"ridge": %.10g, "events": %d, "coefficients": %s, "standard_errors": %s}',
  name, ridge, events, number(coefficients), number(standard_errors))))
writeLines(c("{", paste(lines, collapse = ",\n"), "}"), "ridge.json")
writeLines(c(R.version.string, paste("mgcv", packageVersion("mgcv")), paste("survival", packageVersion("survival"))), "ridge-versions.txt")
