# SPDX-License-Identifier: Apache-2.0
# The R side of the R kernel: takes commands from main.pl, runs cells, reports their output.
#
# Output needs no capturing: what R prints goes where it always goes. Only values, conditions and
# plots are announced by marks (main.pl says how they look). Nothing but this script's one local
# environment is left in the session; the global environment is the user's.
local({
    nonce <- Sys.getenv("CLOCHE_R_NONCE")
    commands <- file(Sys.getenv("CLOCHE_R_COMMANDS"), "rb", raw = TRUE)
    out <- file("/proc/self/fd/1", "wb", raw = TRUE)
    Sys.unsetenv(c("CLOCHE_R_NONCE", "CLOCHE_R_COMMANDS"))

    # ---- marks ----------------------------------------------------------------------------------

    bytes <- c("\x1d", "\x1e", "\x1f", "\n", "\r")
    letters_of <- c("\x1dd", "\x1de", "\x1df", "\x1dn", "\x1dr")

    escape <- function(text) {
        text <- enc2utf8(paste(text, collapse = "\n"))
        if (!grepl("[\x1d-\x1f\n\r]", text, useBytes = TRUE)) return(text)
        for (i in seq_along(bytes)) text <- gsub(bytes[i], letters_of[i], text, fixed = TRUE, useBytes = TRUE)
        text
    }

    unescape <- function(text) {
        if (grepl("\x1d", text, fixed = TRUE, useBytes = TRUE)) {
            for (i in rev(seq_along(bytes))) text <- gsub(letters_of[i], bytes[i], text, fixed = TRUE, useBytes = TRUE)
        }
        Encoding(text) <- "UTF-8"
        text
    }

    announce <- function(...) suspendInterrupts({
        fields <- vapply(c(...), escape, "")
        flush(stdout())
        writeBin(charToRaw(paste0("\x1e", nonce, "\x1f", paste(fields, collapse = "\x1f"), "\x1e")), out)
        flush(out)
    })

    # ---- values ---------------------------------------------------------------------------------

    mime_types <- c("text/html", "text/markdown", "text/latex", "application/json", "application/javascript",
                    "image/svg+xml")

    # The plain text as R prints it, and what the repr package makes of the value.
    bundle <- function(value) {
        data <- c("text/plain" = paste(utils::capture.output(print(value)), collapse = "\n"))
        if (!requireNamespace("repr", quietly = TRUE)) return(data)
        if (is.function(value) || is.environment(value) || isS4(value)) return(data)
        for (mime in mime_types) {
            form <- tryCatch(suppressWarnings(repr::mime2repr[[mime]](value)), error = function(e) NULL)
            if (is.character(form) && length(form) == 1 && !is.na(form)) data[mime] <- form
        }
        data
    }

    # The first value of each kind costs time; better while nobody waits.
    warm_up <- function()
        invisible(tryCatch({ bundle(1); bundle(data.frame(a = 1)) }, error = function(condition) NULL))

    is_drawing <- function(value) inherits(value, c("ggplot", "gg", "trellis", "recordedplot"))

    show_value <- function(value) {
        if (is_drawing(value)) return(invisible(print(value)))
        data <- bundle(value)
        announce("display", rbind(names(data), data))
    }

    # ---- plots ----------------------------------------------------------------------------------

    # A drawing device opens when a cell first draws; each page is a file, shown at the end of the cell.
    plot_files <- NULL
    plot_device <- NULL

    is_svg <- function() {
        wanted <- getOption("jupyter.plot_mimetypes", "image/png")
        "image/svg+xml" %in% wanted && !("image/png" %in% wanted)
    }

    open_device <- function(...) {
        width <- getOption("repr.plot.width", 7)
        height <- getOption("repr.plot.height", 7)
        folder <- tempfile("plot-")
        dir.create(folder)
        plot_files <<- folder
        if (is_svg()) {
            grDevices::svg(file.path(folder, "%04d.svg"), width = width, height = height, onefile = FALSE)
        } else {
            grDevices::png(file.path(folder, "%04d.png"), width = width, height = height, units = "in",
                res = getOption("repr.plot.res", 120),
                type = if (capabilities("cairo")) "cairo" else getOption("bitmapType"))
        }
        plot_device <<- grDevices::dev.cur()
    }

    close_plots <- function() {
        if (is.null(plot_device)) return()
        if (plot_device %in% grDevices::dev.list()) grDevices::dev.off(plot_device)
        for (file in sort(list.files(plot_files, full.names = TRUE))) {
            mime <- if (endsWith(file, ".svg")) "image/svg+xml" else "image/png"
            announce("plot", mime, file, "plot without title")
        }
        plot_device <<- NULL
    }

    # ---- conditions -----------------------------------------------------------------------------

    on_message <- function(condition) {
        announce("text", "stderr", conditionMessage(condition))
        invokeRestart("muffleMessage")
    }

    on_warning <- function(condition) {
        level <- getOption("warn")
        if (level >= 2) stop("(converted from warning) ", conditionMessage(condition), call. = FALSE)
        call <- conditionCall(condition)
        if (is_own(call)) call <- NULL
        place <- if (is.null(call)) "" else paste0(" in ", deparse(call, nlines = 1)[1])
        text <- paste0("Warning message", place, ":\n", conditionMessage(condition), "\n")
        if (level >= 0) announce("text", "stderr", text)
        invokeRestart("muffleWarning")
    }

    # A call of this script, which means nothing to the user.
    is_own <- function(call)
        is.call(call) && (identical(call[[1]], quote(eval)) || identical(call[[1]], quote(withVisible)))

    # The calls between the cell and the error.
    stack <- NULL

    on_error <- function(condition) {
        calls <- sys.calls()
        depth <- Position(function(call) identical(call[[1]], quote(withVisible)), calls, right = FALSE, nomatch = 0)
        calls <- if (depth > 0) calls[-seq_len(min(length(calls), depth + 2))] else list()
        stack <<- calls[!vapply(calls, is_handler, NA)]
    }

    is_handler <- function(call) {
        text <- deparse(call[[1]], nlines = 1)[1]
        grepl(paste0("^(.handleSimpleError|h|function \\(condition\\)|\\(function|stop|sys.calls|on_error)$",
                     "|^\\(function"), text)
    }

    tell_error <- function(condition) {
        call <- conditionCall(condition)
        place <- if (is.null(call) || is_own(call)) "Error: "
                 else paste0("Error in ", deparse(call, nlines = 1)[1], ": ")
        value <- paste0(place, conditionMessage(condition))
        calls <- vapply(stack, function(call) paste(deparse(call, nlines = 3), collapse = "\n"), "")
        lines <- if (length(calls)) c("Traceback:", paste0(seq_along(calls), ". ", calls)) else character()
        announce("error", value, value, lines)
    }

    # ---- cells ----------------------------------------------------------------------------------

    evaluate <- function(expressions) {
        for (i in seq_along(expressions)) {
            result <- withVisible(eval(expressions[i], globalenv()))
            if (result$visible) show_value(result$value)
        }
    }

    # An interrupt that came too late for the cell before is no business of this one.
    forget_interrupts <- function() tryCatch(allowInterrupts(Sys.sleep(0)), interrupt = function(condition) NULL)

    run <- function(code) {
        stack <<- NULL
        forget_interrupts()
        expressions <- tryCatch(parse(text = code, keep.source = TRUE), error = identity)
        if (inherits(expressions, "error")) {
            message <- paste0("Error: ", conditionMessage(expressions))
            announce("error", message, message)
            return("error")
        }
        tryCatch({
            withCallingHandlers(allowInterrupts(evaluate(expressions)),
                                message = on_message, warning = on_warning, error = on_error)
            "ok"
        }, interrupt = function(condition) "aborted", error = function(condition) {
            tell_error(condition)
            "error"
        })
    }

    # Sets variables and returns what they were.
    set_env <- function(settings) {
        if (length(settings) == 0) return(NULL)
        names <- settings[c(TRUE, FALSE)]
        before <- Sys.getenv(names, NA, names = TRUE)
        do.call(Sys.setenv, as.list(stats::setNames(settings[c(FALSE, TRUE)], names)))
        before
    }

    restore_env <- function(before) {
        if (is.null(before)) return()
        Sys.unsetenv(names(before)[is.na(before)])
        kept <- before[!is.na(before)]
        if (length(kept)) do.call(Sys.setenv, as.list(kept))
    }

    on_run <- function(code, settings) {
        before <- set_env(settings)
        status <- run(code)
        tryCatch(close_plots(), error = function(condition) NULL, interrupt = function(condition) NULL)
        restore_env(before)
        announce("done", status)
    }

    on_cd <- function(path) {
        failed <- tryCatch({ setwd(path); "" }, error = function(condition) reason(path))
        announce("cd", failed)
    }

    reason <- function(path) {
        if (!file.exists(path)) "No such file or directory"
        else if (!dir.exists(path)) "Not a directory"
        else "Permission denied"
    }

    obey <- function(line) {
        parts <- strsplit(paste0(line, "\x1f."), "\x1f", fixed = TRUE, useBytes = TRUE)[[1]]
        fields <- vapply(parts, unescape, "", USE.NAMES = FALSE)
        fields <- fields[-length(fields)]
        switch(fields[1],
            run = on_run(fields[2], fields[-(1:2)]),
            cd = on_cd(fields[2]),
            env = set_env(fields[-1]),
            renew = suppressWarnings(rm(".Random.seed", envir = globalenv())),
            warm = warm_up()
        )
    }

    serve <- function() {
        repeat {
            line <- readLines(commands, 1, warn = FALSE)
            if (length(line) == 0) quit("no", 0, FALSE)
            obey(line)
        }
    }

    options(device = open_device, width = 120, max.print = 10000, cli.num_colors = 1L, crayon.enabled = FALSE,
        pager = function(files, header, title, delete.file) for (file in files) writeLines(readLines(file)),
        browser = function(url) message("Browse URL: ", url),
        repr.plot.width = 7, repr.plot.height = 7, repr.plot.res = 120)
    announce("ready", paste(R.version$major, R.version$minor, sep = "."))
    suspendInterrupts(serve())
})
