// SPDX-License-Identifier: Apache-2.0
// Data of charts that a cell drew. Types that this package does not know arrive as they are, as a plain Chart.

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
