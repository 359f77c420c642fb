// SPDX-License-Identifier: Apache-2.0
// Data of charts that a cell drew. Types that this package does not know arrive as they are, as a plain Chart. What a
// chart is beyond the stock SDK's types is in its key `cloche` (docs/charts.md): a histogram, a heatmap, ...

export enum ChartType {
  LINE = 'line',
  SCATTER = 'scatter',
  BAR = 'bar',
  PIE = 'pie',
  BOX_AND_WHISKER = 'box_and_whisker',
  SUPERCHART = 'superchart',
  UNKNOWN = 'unknown',
}

export enum ScaleType {
  LINEAR = 'linear',
  DATETIME = 'datetime',
  CATEGORICAL = 'categorical',
  LOG = 'log',
  SYMLOG = 'symlog',
  LOGIT = 'logit',
  FUNCTION = 'function',
  FUNCTIONLOG = 'functionlog',
  ASINH = 'asinh',
}

/** What every chart has. */
export type Chart = {
  type: ChartType
  title: string
  elements: any[]
  /** What the chart is beyond the types here; absent where there is nothing more to say. */
  cloche?: ChartDetail
}

export type Chart2D = Chart & {
  x_label?: string
  y_label?: string
  x_unit?: string
  y_unit?: string
}

export type PointData = {
  label: string
  points: [number | string, number | string][]
}

export type PointChart = Chart2D & {
  x_ticks: (number | string)[]
  x_scale: ScaleType
  x_tick_labels: string[]
  y_ticks: (number | string)[]
  y_scale: ScaleType
  y_tick_labels: string[]
  elements: PointData[]
}

export type LineChart = PointChart & { type: ChartType.LINE }
export type ScatterChart = PointChart & { type: ChartType.SCATTER }

export type BarData = { label: string; value: string; group: string }
export type BarChart = Chart2D & { type: ChartType.BAR; elements: BarData[] }

export type PieData = { label: string; angle: number; radius: number }
export type PieChart = Chart & { type: ChartType.PIE; elements: PieData[] }

export type BoxAndWhiskerData = {
  label: string
  min: number
  first_quartile: number
  median: number
  third_quartile: number
  max: number
  outliers: number[]
}
export type BoxAndWhiskerChart = Chart2D & { type: ChartType.BOX_AND_WHISKER; elements: BoxAndWhiskerData[] }

/** Several charts in one figure. */
export type SuperChart = Chart & { type: ChartType.SUPERCHART; elements: Chart[] }

export type ChartTypes = LineChart | ScatterChart | BarChart | PieChart | BoxAndWhiskerChart | SuperChart

/** A number, a text (categories, dates), or nothing where a value was not finite. */
export type ChartValue = number | string | null

/** Of an element with more values than a chart may have: how many there were, and every which was kept. */
export type Sampled = {
  element: number
  what: 'points' | 'rows' | 'columns' | 'lines'
  of: number
  kept: number
  step: number
}

type DetailOf<Type extends string, Data> = { type: Type; elements: Data[]; sampled?: Sampled[] }
type DetailAxes = { x_label: string | null; y_label: string | null; x_unit: string | null; y_unit: string | null }
type DetailTicks = DetailAxes & {
  x_ticks: ChartValue[]
  x_tick_labels: string[]
  x_scale: string
  y_ticks: ChartValue[]
  y_tick_labels: string[]
  y_scale: string
}

/** `bins`: lower edge, upper edge, value. */
export type HistogramData = { label: string; bins: [ChartValue, ChartValue, number | null][] }
export type Histogram = DetailOf<'histogram', HistogramData> &
  DetailTicks & { orientation: 'vertical' | 'horizontal' }

/** `points`: position, lower end, upper end. */
export type AreaData = { label: string; points: [ChartValue, ChartValue, ChartValue][] }
/** Filled between two curves; `lines` are drawn beside. */
export type Area = DetailOf<'area', AreaData> &
  DetailTicks & {
    orientation: 'vertical' | 'horizontal'
    stacked: boolean
    lines: { label: string; points: [ChartValue, ChartValue][] }[]
  }

/** `values[row][column]` at `x[column]`, `y[row]`; none of a picture in colours. */
export type HeatmapData = {
  label: string
  rows: number
  columns: number
  channels: number
  x: ChartValue[] | null
  y: ChartValue[] | null
  values: (number | null)[][] | null
  value_min: number | null
  value_max: number | null
  colormap: string | null
}
export type Heatmap = DetailOf<'heatmap', HeatmapData> & DetailTicks

/** `x_errors`, `y_errors`: of each point, how far down and up. */
export type ErrorBarData = {
  label: string
  points: [ChartValue, ChartValue][]
  x_errors: [number | null, number | null][] | null
  y_errors: [number | null, number | null][] | null
}
export type ErrorBars = DetailOf<'error_bar', ErrorBarData> & DetailTicks

/** `upper` where the contour is filled. */
export type ContourData = { level: number | null; upper: number | null; paths: [ChartValue, ChartValue][][] }
export type Contour = DetailOf<'contour', ContourData> &
  DetailTicks & { filled: boolean; levels: (number | null)[] | null }

/** `points`: angle in radians, radius. */
export type PolarData = {
  label: string
  points: [ChartValue, ChartValue][]
  widths: (number | null)[] | null
  bases: (number | null)[] | null
}
export type Polar = DetailOf<'polar', PolarData> &
  DetailTicks & { of: 'line' | 'scatter' | 'bar' | 'area'; theta_offset: number; theta_direction: number }

/** `points`: x, y, z. */
export type SpatialData = { label: string; points: [ChartValue, ChartValue, ChartValue][] }
export type Spatial = DetailOf<'scatter_3d' | 'line_3d', SpatialData> &
  DetailAxes & { z_label: string | null; z_unit: string | null; lines: SpatialData[] }

/** One trace, its columns by plotly's names. */
export type PlotlyData = {
  label: string
  trace: string
  mode: string | null
  orientation: string | null
  columns: Record<string, unknown[]>
}
export type Plotly = DetailOf<'plotly', PlotlyData> & DetailAxes

/** What a channel of altair stands for. */
export type Channel = {
  field: string | null
  type: string | null
  title: string | null
  aggregate: string | null
  bin: boolean
}
/** One mark: its channels (x, y, color, ...) and the columns they name. */
export type AltairData = {
  label: string
  mark: string
  encoding: Record<string, Channel>
  columns: Record<string, unknown[]>
}
export type Altair = DetailOf<'altair', AltairData> & DetailAxes

/** Of a chart that its type says all about, with more values than it may have. */
export type Plain = { type: 'line' | 'scatter' | 'bar' | 'pie' | 'box_and_whisker'; sampled: Sampled[] }

export type ChartDetail =
  | Histogram
  | Area
  | Heatmap
  | ErrorBars
  | Contour
  | Polar
  | Spatial
  | Plotly
  | Altair
  | Plain
