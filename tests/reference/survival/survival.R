# Survival curves with intervals, and chances from one score, by R's survival.
#
#     Rscript survival.R > survival.json
#
# curves: Freireich's trial, and 60 patients with ties, events at time 0 and a last event. chances: a Cox regression on one score with
# Breslow's ties and baseline, as `survfit` predicts it at scores, with intervals of log(-log S).

library(survival)

json <- function(x) {
  if (is.list(x)) {
    inner <- vapply(names(x), function(name) paste0('"', name, '": ', json(x[[name]])), "")
    return(paste0("{", paste(inner, collapse = ", "), "}"))
  }
  if (is.character(x)) return(paste0('"', x, '"'))
  told <- ifelse(is.na(x), "null", trimws(formatC(as.numeric(x), digits = 15, format = "g")))
  if (length(x) == 1) told else paste0("[", paste(told, collapse = ", "), "]")
}

curve <- function(time, event) {
  fit <- survfit(Surv(time, event) ~ 1, conf.type = "log-log")
  seen <- fit$n.event > 0
  median <- quantile(fit, 0.5)
  list(time = time, event = event + 0, at = fit$time[seen], share = fit$surv[seen], low = fit$lower[seen], high = fit$upper[seen],
       at_risk = fit$n.risk[seen], median = unname(c(median$quantile, median$lower, median$upper)))
}

set.seed(7)
trial <- list(time = c(6, 6, 6, 6, 7, 9, 10, 10, 11, 13, 16, 17, 19, 20, 22, 23, 25, 32, 32, 34, 35))
trial$event <- !(seq_along(trial$time) %in% (1 + c(3, 5, 7, 8, 11, 12, 13, 16, 17, 18, 19, 20)))
many <- list(time = c(floor(rexp(58, 1 / 20)), 0, 400))
many$event <- c(runif(58) < 0.6, TRUE, TRUE)

score <- round(rnorm(120), 6)
hidden <- rexp(120, 0.02 * exp(0.8 * score))
lost <- rexp(120, 0.01)
time <- round(pmax(0.5, pmin(hidden, lost)), 1)
event <- hidden <= lost
fit <- coxph(Surv(time, event) ~ score, ties = "breslow")
asked <- c(-1.4, 0, 0.3, 1.6)
by <- c(10, 25, 60)
found <- summary(survfit(fit, newdata = data.frame(score = asked), conf.type = "log-log"), times = by)

cat(json(list(
  versions = paste("R", getRversion(), "survival", packageVersion("survival")),
  trial = curve(trial$time, trial$event),
  many = curve(many$time, many$event),
  chances = list(score = score, time = time, event = event + 0, asked = asked, by = by, coefficient = unname(coef(fit)),
                 chance = as.vector(1 - found$surv), low = as.vector(1 - found$upper), high = as.vector(1 - found$lower))
)), "\n")
