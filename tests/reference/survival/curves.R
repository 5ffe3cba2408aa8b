# Survival on a grid of times, by R's survival.
#
#     Rscript curves.R > curves.json
#
# lung: 228 patients of the package, whose times are of the package; at is Kaplan and Meier's at the grid, cells are patients by interval (events up
# to its end, censored from its beginning on, and last those followed beyond), and table is the life table's product of 1 - d / (n - c/2).
# rounded: the same patients, each censored one at the end of an interval, which is the beginning of the next. error is Greenwood's.

library(survival)

json <- function(x) {
  if (is.list(x)) {
    inner <- vapply(names(x), function(name) paste0('"', name, '": ', json(x[[name]])), "")
    return(paste0("{", paste(inner, collapse = ", "), "}"))
  }
  if (is.character(x)) return(paste0('"', x, '"'))
  told <- trimws(formatC(as.numeric(x), digits = 15, format = "g"))
  if (length(x) == 1) told else paste0("[", paste(told, collapse = ", "), "]")
}

grid <- c(90, 200, 365, 600)

of <- function(time, event) {
  found <- summary(survfit(Surv(time, event) ~ 1), times = grid)
  events <- table(cut(time[event], c(0, grid, Inf)))[seq_along(grid)]
  censored <- table(cut(time[!event], c(0, grid, Inf), right = FALSE))[seq_along(grid)]
  gone <- events + censored
  n <- length(time) - c(0, cumsum(gone))[seq_along(grid)]
  list(time = time, event = event + 0, share = found$surv, error = found$std.err,
       cells = c(as.vector(rbind(events, censored)), length(time) - sum(gone)),
       table = cumprod(1 - events / (n - censored / 2)))
}

time <- lung$time
event <- lung$status == 2
ends <- vapply(time, function(one) c(grid, 1100)[which(c(grid, 1100) >= one)[1]], 0)
cat(json(list(
  versions = paste("R", getRversion(), "survival", packageVersion("survival")),
  grid = grid,
  lung = of(time, event),
  rounded = of(ifelse(event, time, ends), event)
)), "\n")
